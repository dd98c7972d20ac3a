"""HTTP pictures, watched folders, GStreamer's child, time stamps: the parts that need no daemon."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from camera_servers import HttpCamera, NumberedCamera, jpeg, road_picture, wait_until
from hypothesis import given
from hypothesis import strategies as st

from edge_road.clock import SystemClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.sources import source_for
from edge_road.runtime.sources.base import RisingTimes, Source, Unreadable
from edge_road.runtime.sources.gstreamer import RawVideoChild, csi_pipeline
from edge_road.runtime.sources.multipart import LARGEST_PICTURE_BYTES, PictureParts, boundary_of
from edge_road.runtime.vehicle_sources import CsiSource, ImageDirectorySource, MjpegSource

CLOCK = SystemClock()


def read(source: Source, seconds: float = 5.0) -> Frame | Unreadable:
    end_ns = CLOCK.mono_ns() + round(seconds * 1e9)
    while CLOCK.mono_ns() < end_ns:
        if (picture := source.read(CLOCK.mono_ns() + 200_000_000)) is not None:
            return picture
    raise AssertionError("no picture came")


# ---- multipart ----


def part(content: bytes, with_length: bool) -> bytes:
    length = b"Content-Length: %d\r\n" % len(content) if with_length else b""
    return b"--frame\r\nContent-Type: image/jpeg\r\n" + length + b"\r\n" + content + b"\r\n"


@given(
    st.lists(st.tuples(st.binary(max_size=200), st.booleans()), max_size=6),
    st.lists(st.integers(1, 60), min_size=1, max_size=20),
)
def test_parts_come_out_whole_however_the_bytes_arrive(
    parts: list[tuple[bytes, bool]], cuts: list[int]
) -> None:
    parts = [(content, length) for content, length in parts if b"--frame" not in content]
    stream = b"".join(part(*p) for p in parts) + b"--frame\r\n"
    reader, found, position, number = PictureParts(b"frame"), [], 0, 0
    while position < len(stream):
        step = cuts[number % len(cuts)]
        found += reader.feed(stream[position : position + step])
        position, number = position + step, number + 1
    assert found == [content for content, _ in parts]


@given(st.binary(max_size=2000))
def test_any_bytes_are_survived(content: bytes) -> None:
    with suppress(ValueError):
        PictureParts(b"frame").feed(content)


def test_a_part_whose_length_is_wrong_is_passed_over_at_the_next_marker() -> None:
    lie = b"--frame\r\nContent-Length: 30\r\n\r\nshort\r\n"
    found = PictureParts(b"frame").feed(lie + part(b"good one", True) + part(b"good two", True) + b"--frame")
    assert found[-1] == b"good two"


@pytest.mark.parametrize(
    "stream",
    [
        b"--frame\r\nContent-Length: 999999999\r\n\r\n",
        b"--frame\r\n" + b"X-Padding: 1\r\n" * 1000,
        b"--frame\r\n\r\n" + b"a" * (LARGEST_PICTURE_BYTES + 20_000),
    ],
)
def test_a_stream_without_bounds_is_refused(stream: bytes) -> None:
    with pytest.raises(ValueError, match=r"picture|header"):
        PictureParts(b"frame").feed(stream)


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/x-mixed-replace; boundary=frame", b"frame"),
        ('multipart/x-mixed-replace;boundary="--my boundary"', None),
        ('Multipart/X-Mixed-Replace; charset=x; boundary="--abc"', b"abc"),
        ("text/html", None),
        ("", None),
    ],
)
def test_the_boundary_is_read_from_the_content_type(content_type: str, boundary: bytes | None) -> None:
    assert boundary_of(content_type) == boundary


# ---- HTTP camera ----


def test_an_http_camera_is_read_with_its_password_and_without_showing_it() -> None:
    camera = HttpCamera()
    url = camera.url.replace("http://", "http://admin:pl4%6eted@")
    source = source_for(MjpegSource(kind="mjpeg", url=url), CLOCK)
    source.open()
    picture = read(source)
    source.close()
    camera.close()
    assert isinstance(picture, Frame)
    assert picture.pixels.shape == (96, 128, 3)
    assert b"Authorization: Basic YWRtaW46cGw0bnRlZA==" in camera.requests[0]  # admin:pl4nted
    assert "pl4" not in source.description


@pytest.mark.parametrize("behaviour", ["refuse", "mute"])
def test_an_http_camera_that_does_not_want_is_a_camera_error(behaviour: str) -> None:
    camera = HttpCamera()
    camera.behaviour = behaviour
    source = source_for(MjpegSource(kind="mjpeg", url=camera.url, open_s=0.3), CLOCK)
    with pytest.raises(CameraError):
        source.open()
    source.close()
    camera.close()


def test_a_port_where_nobody_listens_is_a_camera_error() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, but not listened to
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        with pytest.raises(CameraError, match="cannot be reached"):
            source_for(MjpegSource(kind="mjpeg", url=url), CLOCK).open()


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
def test_a_name_that_no_host_can_have_is_a_camera_error(host: str) -> None:
    source = source_for(MjpegSource(kind="mjpeg", url=f"http://{host}/video"), CLOCK)
    with pytest.raises(CameraError, match="cannot be reached") as refused:
        source.open()
    assert "label" in refused.value.details["got"]


def test_a_cut_picture_is_unreadable_and_silence_is_the_end() -> None:
    camera = HttpCamera()
    camera.behaviour = "cut"
    source = source_for(MjpegSource(kind="mjpeg", url=camera.url, silent_s=0.2), CLOCK)
    source.open()
    assert isinstance(read(source), Unreadable)
    assert source.rejected == 1
    camera.behaviour = "silent"
    with pytest.raises(CameraError, match="sends no pictures"):
        list(iter(lambda: source.read(CLOCK.mono_ns() + 200_000_000), "never"))
    source.close()
    camera.close()


@pytest.fixture
def numbered() -> Iterator[tuple[NumberedCamera, Source]]:
    camera = NumberedCamera()
    source = source_for(MjpegSource(kind="mjpeg", url=camera.url), CLOCK)
    greeting = threading.Thread(target=camera.accept)
    greeting.start()
    source.open()
    greeting.join()
    yield camera, source
    source.close()
    camera.close()


def test_of_all_pictures_that_wait_only_the_newest_is_judged(numbered: tuple[NumberedCamera, Source]) -> None:
    camera, source = numbered
    for count in (1, 20, 1, 28):
        camera.send(count)
        newest = read(source)
        assert isinstance(newest, Frame)
        assert (newest.number, camera.number_of(newest.pixels)) == (camera.sent, camera.sent - 1)
        assert source.read(CLOCK.mono_ns()) is None


def test_a_camera_faster_than_its_reader_does_not_run_ahead(numbered: tuple[NumberedCamera, Source]) -> None:
    camera, source = numbered
    sender = threading.Thread(target=camera.send, args=(150, 0.005))
    sender.start()
    read(source)
    while sender.is_alive():
        CLOCK.sleep(0.06)
        sent = camera.sent
        newest = read(source)
        assert isinstance(newest, Frame)
        assert newest.number >= sent
        assert (newest.number - 1) % camera.COUNT == camera.number_of(newest.pixels)
    sender.join()


def test_the_last_picture_before_the_end_of_the_stream_is_shown(
    numbered: tuple[NumberedCamera, Source],
) -> None:
    camera, source = numbered
    camera.send()
    camera.close()
    assert isinstance(read(source), Frame)
    with pytest.raises(CameraError, match="ended the stream"):
        read(source)


# ---- watched folder ----


def watched(folder: Path) -> Source:
    source = source_for(ImageDirectorySource(kind="images", path=folder, watch=True), CLOCK)
    source.open()
    return source


def test_only_pictures_that_are_put_in_later_are_judged_and_the_newest_wins(tmp_path: Path) -> None:
    (tmp_path / "old.jpg").write_bytes(jpeg(road_picture()))
    source = watched(tmp_path)
    assert source.read(CLOCK.mono_ns()) is None
    for level, name in (("dry", "b.jpg"), ("icy", "a.jpg")):
        (tmp_path / name).write_bytes(jpeg(road_picture(level)))
    (tmp_path / "notes.txt").write_text("no picture")
    picture = read(source)
    assert isinstance(picture, Frame)
    assert picture.pixels.mean() > 180
    assert source.read(CLOCK.mono_ns()) is None
    assert source.rejected == 1
    source.close()


@pytest.mark.parametrize("aside", ["a.jpg.tmp", ".a.jpg", "upload.part"])
def test_a_picture_that_is_written_aside_and_moved_into_place_is_no_bad_picture(
    tmp_path: Path, aside: str
) -> None:
    source = watched(tmp_path)
    for between in (False, True):
        (tmp_path / aside).write_bytes(jpeg(road_picture()))
        if between:
            assert source.read(CLOCK.mono_ns()) is None
        (tmp_path / aside).rename(tmp_path / "a.jpg")
        assert isinstance(read(source), Frame)
        assert source.read(CLOCK.mono_ns()) is None
    assert source.rejected == 0
    (tmp_path / "a.jpg").rename(tmp_path / "a.txt")
    assert source.read(CLOCK.mono_ns()) is None
    assert source.rejected == 1
    source.close()


def test_a_broken_picture_in_a_watched_folder_is_unreadable(tmp_path: Path) -> None:
    source = watched(tmp_path)
    (tmp_path / "cut.jpg").write_bytes(jpeg(road_picture())[:-40])
    assert isinstance(read(source), Unreadable)
    source.close()


def test_a_watched_folder_that_goes_away_is_lost_and_one_that_is_not_there_too(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    source = watched(folder)
    folder.rmdir()
    with pytest.raises(CameraError, match="gone"):
        source.read(CLOCK.mono_ns() + 10**9)
    source.close()
    with pytest.raises(CameraError, match="No such file"):
        source.open()
    source.close()


# ---- GStreamer ----


def test_the_pipeline_of_a_jetson_keeps_the_picture_in_the_cameras_memory() -> None:
    words = csi_pipeline(CsiSource(kind="csi", sensor=1, fps=29.97, flip=2))
    assert words[:3] == ["nvarguscamerasrc", "sensor-id=1", "!"]
    assert "video/x-raw(memory:NVMM),format=NV12,width=1920,height=1080,framerate=29970/1000" in words
    assert words.index("nvvidconv") < words.index("video/x-raw,format=I420,width=960,height=540")
    assert words[-3:] == ["fdsink", "fd=1", "sync=false"]


@pytest.mark.skipif(shutil.which("gst-launch-1.0") is None, reason="GStreamer is not installed")
def test_a_gstreamer_child_sends_pictures_and_is_gone_after_the_close() -> None:
    settings = CsiSource(kind="csi", pipeline="test", width=64, height=48, fps=30)
    source = source_for(settings, CLOCK)
    source.open()
    pid = source._child.pid  # type: ignore[attr-defined]
    first, second = read(source), read(source)
    assert isinstance(first, Frame)
    assert first.pixels.shape == (48, 64, 3)
    assert second.captured_mono_ns > first.captured_mono_ns
    source.close()
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.skipif(shutil.which("gst-launch-1.0") is None, reason="GStreamer is not installed")
def test_a_system_that_grants_no_larger_pipe_shows_pictures_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError("beyond pipe-max-size")

    monkeypatch.setattr(fcntl, "fcntl", refused)
    source = source_for(CsiSource(kind="csi", pipeline="test", width=64, height=48, fps=30), CLOCK)
    source.open()
    assert isinstance(read(source), Frame)
    source.close()


@pytest.mark.skipif(shutil.which("gst-launch-1.0") is None, reason="GStreamer is not installed")
def test_a_machine_without_a_csi_camera_says_so() -> None:
    source = source_for(CsiSource(kind="csi"), CLOCK)
    source.open()
    with pytest.raises(CameraError, match="GStreamer has ended"):
        read(source, seconds=20)
    source.close()


def test_of_all_pictures_in_the_pipe_only_the_newest_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that has written 30 pictures, half of one more, and the other half when it may."""
    program, may_go_on = tmp_path / "gst-launch-1.0", tmp_path / "go"
    program.write_text(HASTY_CHILD.format(python=sys.executable, go=str(may_go_on)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    child = RawVideoChild([], (72, 64), "a hasty child")
    wait_until(lambda: (tmp_path / "go.written").exists())
    newest = child.read(1.0)
    assert newest is not None
    assert (newest == 29).all()
    assert child.read(0.05) is None
    may_go_on.touch()
    wait_until(lambda: (last := child.read(0.5)) is not None and bool((last == 30).all()))
    child.close()


HASTY_CHILD = """#!{python}
import pathlib, sys, time
pictures = [bytes([n]) * (72 * 64) for n in range(31)]
sys.stdout.buffer.write(b"".join(pictures[:30]) + pictures[30][:2000])
sys.stdout.buffer.flush()
pathlib.Path({go!r} + ".written").touch()
while not pathlib.Path({go!r}).exists():
    time.sleep(0.01)
sys.stdout.buffer.write(pictures[30][2000:])
sys.stdout.buffer.flush()
time.sleep(60)
"""


def test_a_machine_without_gstreamer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(CameraError, match="not installed"):
        source_for(CsiSource(kind="csi"), CLOCK).open()


# ---- time stamps ----


@given(st.lists(st.one_of(st.none(), st.integers(-5, 40))))
def test_only_rising_times_pass(times: list[int | None]) -> None:
    rising = RisingTimes()
    passed = [time for time in times if rising.rises(time)]
    known = [time for time in passed if time is not None]
    assert known == sorted(set(known))
    assert passed.count(None) == times.count(None)
