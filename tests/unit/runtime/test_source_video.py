from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import av.error
import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.sources import EndOfStream
from edge_road.runtime.sources.video import VideoFile
from edge_road.runtime.vehicle_sources import VideoSource

SOON = 10**18


def write_video(path: Path, frames: int = 12, fps: int = 10, size: tuple[int, int] = (64, 96)) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.height, stream.width, stream.pix_fmt = *size, "yuv420p"
        for number in range(frames):
            pixels = np.full((*size, 3), 20 * (number % 12), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def open_video(path: Path, loop: bool = False) -> tuple[VideoFile, ScriptedClock]:
    clock = ScriptedClock(mono_ns=10**9)
    source = VideoFile(VideoSource(kind="video", path=path, loop=loop), clock)
    source.open()
    return source, clock


def read_all(source: VideoFile) -> list[Frame]:
    frames = []
    while True:
        try:
            frame = source.read(SOON)
        except EndOfStream:
            return frames
        assert frame is not None
        frames.append(frame)


def test_frames_come_when_their_time_stamps_say_and_then_the_stream_ends(tmp_path: Path) -> None:
    source, _ = open_video(write_video(tmp_path / "a.mp4"))
    frames = read_all(source)
    source.close()
    assert source.period_s == pytest.approx(0.1)
    assert [frame.captured_mono_ns for frame in frames] == [10**9 + n * 10**8 for n in range(12)]
    assert [round(int(frame.pixels.mean()) / 20) for frame in frames] == list(range(12))


def test_a_frame_that_is_not_due_is_kept_for_the_next_read(tmp_path: Path) -> None:
    source, clock = open_video(write_video(tmp_path / "a.mp4"))
    assert source.read(clock.mono_ns()) is not None
    assert source.read(clock.mono_ns() + 5 * 10**7) is None
    frame = source.read(clock.mono_ns() + 5 * 10**7)
    assert frame is not None
    assert frame.number == 1


def test_a_loop_goes_on_with_rising_time(tmp_path: Path) -> None:
    source, _ = open_video(write_video(tmp_path / "a.mp4", frames=4), loop=True)
    frames = [frame for _ in range(10) if (frame := source.read(SOON))]
    source.close()
    assert [round(int(frame.pixels.mean()) / 20) for frame in frames] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert np.diff([frame.captured_mono_ns for frame in frames]).tolist() == [10**8] * 9


class BadDisk:
    """Gives the first packets of a video, then the error of a disk or of a damaged container."""

    def __init__(self, container: Any, error: Exception, packets: int) -> None:
        self.streams, self.close = container.streams, container.close
        self._container, self._error, self._packets = container, error, packets

    def demux(self, video: int) -> Iterator[Any]:
        yield from itertools.islice(self._container.demux(video=video), self._packets)
        raise self._error


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), av.error.InvalidDataError(1, "damaged")])
@pytest.mark.parametrize("packets", [0, 6])
def test_a_disk_that_fails_while_it_is_read_is_a_camera_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, packets: int
) -> None:
    path, real = write_video(tmp_path / "a.mp4"), av.open
    monkeypatch.setattr(av, "open", lambda *a, **k: BadDisk(real(*a, **k), error, packets))
    with pytest.raises(CameraError, match="cannot be read") as caught:
        read_all(open_video(path)[0])
    assert caught.value.exit_code == 5


def test_a_playback_that_fell_behind_does_not_chase_the_lost_time(tmp_path: Path) -> None:
    source, clock = open_video(write_video(tmp_path / "a.mp4"))
    source.read(SOON)
    clock.sleep(5.0)
    times_ns = [frame.captured_mono_ns for _ in range(3) if (frame := source.read(SOON))]
    assert np.diff(times_ns).tolist() == [10**8] * 2


def test_a_damaged_video_gives_what_can_be_decoded(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.mp4", frames=40)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(200)
    path.write_bytes(content)
    source, _ = open_video(path)
    frames = read_all(source)
    assert 1 <= len(frames) + source.rejected <= 60


@pytest.mark.parametrize("content", [b"", b"not a video at all", b"\x00" * 5000])
def test_what_is_no_video_is_a_camera_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(CameraError):
        open_video(path)


def test_a_missing_video_is_a_camera_error(tmp_path: Path) -> None:
    with pytest.raises(CameraError, match="No such file"):
        open_video(tmp_path / "nowhere.mp4")


def test_a_sound_file_has_no_video_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(CameraError, match="no video"):
        open_video(path)


@pytest.mark.parametrize("name", ["concat:a.mp4|b.mp4", "http://127.0.0.1:9/a.mp4", "pipe:0"])
def test_protocols_hidden_in_a_file_name_are_only_names(name: str) -> None:
    with pytest.raises(CameraError, match="No such file"):
        open_video(Path(name))


def test_a_playlist_cannot_reach_the_network(tmp_path: Path) -> None:
    playlist = tmp_path / "a.m3u8"
    playlist.write_text(
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n"
    )
    with pytest.raises(CameraError):
        open_video(playlist)


def test_real_dash_camera_video_decodes(shared_data: Path) -> None:
    path = next((shared_data / "video").glob("udacity*.mp4"))
    source, _ = open_video(path)
    frames = [frame for _ in range(30) if (frame := source.read(SOON))]
    source.close()
    assert len(frames) == 30
    assert source.rejected == 0
    assert frames[0].pixels.std() > 20
