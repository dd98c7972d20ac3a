"""Real kinds of cameras break in front of a whole daemon: V4L2, GStreamer, RTSP, HTTP, watched folder."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from camera_servers import HttpCamera, RtspServer, fake_v4l2, jpeg, road_picture, wait_until
from daemon_harness import Daemon, retried_on_a_busy_machine

FaultRow = Callable[..., None]
LOST_S, BACK_S = 0.5, 5.0
"""at 20 frames a second; the return includes a pause of up to half a second between two attempts"""


def vehicle(**source: Any) -> dict[str, Any]:
    """Test pictures with flat bars would be taken for a smeared lens."""
    return {
        "vehicle": "test",
        "backend": "fake",
        "source": source,
        "quality": {"obstructed_s": 0.0},
        "worker": {"longest_pause_s": 0.5},
    }


def lost_and_back(
    daemon: Daemon, break_it: Callable[[], object], mend_it: Callable[[], object], reason: str = "no_frames"
) -> tuple[float, float]:
    """Seconds to the message that names the loss for good, and from the repair to the next state."""
    began_s = time.monotonic()
    break_it()
    told_s = settled_loss(daemon, reason, began_s)
    mended_s = time.monotonic()
    mend_it()
    back_s = daemon.wait_for_state(since_s=mended_s, timeout_s=40)
    return told_s - began_s, back_s - mended_s


def settled_loss(daemon: Daemon, reason: str, began_s: float) -> float:
    """When the loss was first named with no claim after it; frames already in a socket may still arrive."""
    told_s = daemon.wait_for_unknown(reason, since_s=began_s)
    for _ in range(20):
        time.sleep(0.5)
        claims = [at for at, m in daemon.received if at >= told_s and m.state != "unknown"]
        if not claims:
            return told_s
        told_s = daemon.wait_for_unknown(reason, since_s=claims[-1])
    raise AssertionError("claims go on although the camera is gone")


@retried_on_a_busy_machine
def test_a_usb_camera_is_unplugged_and_comes_back(tmp_path: Path, fault_row: FaultRow) -> None:
    environment = fake_v4l2(tmp_path)
    gone = tmp_path / "gone"
    source = vehicle(kind="v4l2", device="/dev/video77", fps=20)
    with Daemon(tmp_path, vehicle=source, environment=environment) as daemon:
        daemon.wait_for_state("dry")
        lost_s, back_s = lost_and_back(daemon, gone.touch, gone.unlink)
        assert daemon.stop() == 0
    fault_row(
        1, "a V4L2 device answers ENODEV", reason="no_frames", detect_s=lost_s, detect_limit_s=LOST_S,
        recover_s=back_s, recover_limit_s=BACK_S, how="ioctl answered by a preloaded library",
    )  # fmt: skip


@retried_on_a_busy_machine
def test_a_usb_camera_that_falls_silent_is_opened_again(tmp_path: Path, fault_row: FaultRow) -> None:
    environment = fake_v4l2(tmp_path)
    silent = tmp_path / "silent"
    source = vehicle(kind="v4l2", device="/dev/video77", fps=20)
    with Daemon(tmp_path, vehicle=source, environment=environment) as daemon:
        daemon.wait_for_state("dry")
        lost_s, back_s = lost_and_back(daemon, silent.touch, silent.unlink)
        damaged_s = time.monotonic()
        (tmp_path / "damaged").touch()
        daemon.wait_for_unknown("decode", since_s=damaged_s)
        assert daemon.stop() == 0
    fault_row(
        2, "a V4L2 device sends nothing", reason="no_frames", detect_s=lost_s, detect_limit_s=LOST_S,
        recover_s=back_s, recover_limit_s=BACK_S, how="ioctl answered by a preloaded library",
    )  # fmt: skip


def gst_child(daemon: Daemon) -> int | None:
    worker = daemon.worker_pid()
    for task in Path(f"/proc/{worker}/task").iterdir():
        if children := (task / "children").read_text().split():
            return int(children[0])
    return None


@pytest.mark.skipif(shutil.which("gst-launch-1.0") is None, reason="GStreamer is not installed")
@retried_on_a_busy_machine
def test_a_csi_camera_process_dies_or_hangs_and_is_replaced(tmp_path: Path, fault_row: FaultRow) -> None:
    source = vehicle(kind="csi", pipeline="test", width=320, height=240, fps=20)
    with Daemon(tmp_path, vehicle=source) as daemon:
        daemon.wait_for_state("wet")
        first = gst_child(daemon)
        killed_s = time.monotonic()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: gst_child(daemon) not in (None, first))
        replaced_s = time.monotonic()
        back_s = daemon.wait_for_state("wet", since_s=replaced_s) - killed_s
        second = gst_child(daemon)
        assert second is not None
        stopped: int = second
        hung_s, again_s = lost_and_back(daemon, lambda: os.kill(stopped, signal.SIGSTOP), lambda: None)
        third = gst_child(daemon)
        assert third not in (None, second)
        daemon.process.kill()
        daemon.finish()
    wait_until(lambda: not Path(f"/proc/{third}").exists())
    how = "videotestsrc through the child of the CSI camera"
    fault_row(
        1, "the GStreamer child is killed", state="", note="replaced at once, before the state is old",
        recover_s=back_s, recover_limit_s=BACK_S, how=how,
    )  # fmt: skip
    fault_row(
        2, "the GStreamer child stands still", reason="no_frames", detect_s=hung_s, detect_limit_s=LOST_S,
        recover_s=again_s, recover_limit_s=BACK_S, how=how,
    )  # fmt: skip


@pytest.mark.skipif(RtspServer.missing() is not None, reason=str(RtspServer.missing()))
@retried_on_a_busy_machine
def test_an_rtsp_camera_hangs_dies_and_returns_and_its_password_is_never_shown(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    server = RtspServer()
    source = vehicle(kind="rtsp", url=server.url, open_s=2.0)
    try:
        with Daemon(tmp_path, vehicle=source) as daemon:
            daemon.wait_for_state("wet", timeout_s=30)
            stop, go_on = signal.SIGSTOP, signal.SIGCONT
            hung_s, again_s = lost_and_back(
                daemon, lambda: server.process.send_signal(stop), lambda: server.process.send_signal(go_on)
            )
            lost_s, back_s = lost_and_back(daemon, server.kill, server.start)
            assert daemon.stop() == 0
        assert "pl4nted" not in daemon.stderr
        assert "pl4nted" not in "".join(m.to_json() for m in daemon.messages)
    finally:
        server.kill()
    how = "GStreamer's RTSP server"
    fault_row(
        1, "the RTSP server is killed", reason="no_frames", detect_s=lost_s, detect_limit_s=LOST_S,
        recover_s=back_s, recover_limit_s=BACK_S, how=how,
    )  # fmt: skip
    fault_row(
        2, "the RTSP server stands still", reason="no_frames", detect_s=hung_s, detect_limit_s=LOST_S,
        recover_s=again_s, recover_limit_s=BACK_S, how=how,
    )  # fmt: skip


@retried_on_a_busy_machine
def test_an_http_camera_goes_hangs_and_sends_cut_pictures(tmp_path: Path, fault_row: FaultRow) -> None:
    camera = HttpCamera()

    def behave(how: str) -> Callable[[], None]:
        return lambda: setattr(camera, "behaviour", how)

    rows = [
        (1, "an HTTP camera closes the connection", "unplugged", "no_frames"),
        (2, "an HTTP camera keeps the connection and sends nothing", "silent", "no_frames"),
        (8, "JPEG pictures cut at any length", "cut", "decode"),
        (9, "bytes that are no picture", "nonsense", "decode"),
    ]
    with Daemon(tmp_path, vehicle=vehicle(kind="mjpeg", url=camera.url, fps=20)) as daemon:
        daemon.wait_for_state("dry")
        for row, what, behaviour, reason in rows:
            lost_s, back_s = lost_and_back(daemon, behave(behaviour), behave("good"), reason)
            fault_row(
                row, what, reason=reason, detect_s=lost_s, detect_limit_s=LOST_S, recover_s=back_s,
                recover_limit_s=BACK_S, how="TCP server",
            )  # fmt: skip
        assert daemon.stop() == 0
    camera.close()


@retried_on_a_busy_machine
def test_a_camera_that_is_not_there_at_first_is_waited_for(tmp_path: Path, fault_row: FaultRow) -> None:
    """A server that accepts and says nothing is as good as none."""
    camera = HttpCamera()
    camera.behaviour = "mute"
    with Daemon(tmp_path, vehicle=vehicle(kind="mjpeg", url=camera.url, fps=20, open_s=0.5)) as daemon:
        daemon.wait_for_unknown("no_frames")
        time.sleep(1.5)
        assert {m.state for m in daemon.messages} == {"unknown"}
        camera.behaviour = "good"
        mended_s = time.monotonic()
        back_s = daemon.wait_for_state("dry", since_s=mended_s) - mended_s
        assert daemon.stop() == 0
    camera.close()
    fault_row(
        2, "a server accepts and never answers", reason="no_frames", recover_s=back_s, recover_limit_s=BACK_S,
        how="TCP server",
    )  # fmt: skip


def put(folder: Path, name: str, content: bytes) -> None:
    """As a camera program should: written aside, then moved into place."""
    (folder / f".{name}").write_bytes(content)
    os.replace(folder / f".{name}", folder / name)


@retried_on_a_busy_machine
def test_a_watched_folder_takes_good_pictures_and_survives_rubbish(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    bomb = huge_png()
    with Daemon(tmp_path, vehicle=vehicle(kind="images", path=str(folder), watch=True, fps=20)) as daemon:
        daemon.wait_for_unknown("no_frames")
        feed(daemon, folder, lambda n: jpeg(road_picture(seed=n)), lambda: said(daemon, "dry"))
        began_s = time.monotonic()
        feed(daemon, folder, lambda n: bomb, lambda: said(daemon, "unknown", "decode", began_s))
        told_s = daemon.wait_for_unknown("decode", since_s=began_s) - began_s
        os.mkfifo(folder / "pipe.jpg")
        (folder / "loop.jpg").symlink_to("loop.jpg")
        put(folder, "empty.jpg", b"")
        put(folder, "text.txt", b"hello")
        mended_s = time.monotonic()
        feed(
            daemon, folder, lambda n: jpeg(road_picture(seed=n)), lambda: said(daemon, "dry", None, mended_s)
        )
        back_s = daemon.wait_for_state("dry", since_s=mended_s) - mended_s
        assert daemon.stop() == 0
    how = "a folder that is watched"
    fault_row(
        11, "a PNG of 31 kB that unpacks to 256 million pixels", reason="decode", detect_s=told_s,
        detect_limit_s=LOST_S, recover_s=back_s, recover_limit_s=3.0, how=how,
    )  # fmt: skip
    fault_row(
        12, "an empty file, a pipe, a loop of links, a text", reason="decode", how=how,
        recover_s=back_s, recover_limit_s=3.0,
    )  # fmt: skip


def feed(daemon: Daemon, folder: Path, content: Callable[[int], bytes], enough: Callable[[], bool]) -> None:
    for number in range(400):
        if enough():
            return
        put(folder, f"{number}.jpg", content(number))
        time.sleep(0.05)
    raise AssertionError(daemon._tail())


def said(daemon: Daemon, state: str, reason: str | None = None, since_s: float = 0.0) -> bool:
    return any(
        m.state == state and (reason is None or reason in m.reasons)
        for at, m in list(daemon.received)
        if at >= since_s
    )


def huge_png() -> bytes:
    import struct
    import zlib

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    rows = zlib.compress(bytes(2001 * 16000), 9)
    header = struct.pack(">IIBBBBB", 16000, 16000, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_folder_of_very_many_files_is_read_in_bounded_memory(tmp_path: Path, fault_row: FaultRow) -> None:
    import resource

    from edge_road.clock import ScriptedClock
    from edge_road.runtime.sources import source_for
    from edge_road.runtime.vehicle_sources import ImageDirectorySource

    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "0.jpg").write_bytes(jpeg(road_picture()))
    for number in range(20_000):
        os.link(folder / "0.jpg", folder / f"{number:06d}.jpg")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = source_for(ImageDirectorySource(kind="images", path=folder, fps=100), ScriptedClock(10**9))
    source.open()
    frames = [source.read(10**15) for _ in range(20)]
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert all(frame is not None for frame in frames)
    assert np.diff([frame.captured_mono_ns for frame in frames if frame is not None]).min() > 0
    assert grown_mb < 50
    fault_row(
        12, "20,000 files in the folder", state="", how="in process", note=f"{grown_mb:.0f} MB more memory"
    )
