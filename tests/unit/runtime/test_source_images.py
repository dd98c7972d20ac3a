from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.sources import EndOfStream, images
from edge_road.runtime.sources.images import ImageDirectory
from edge_road.runtime.vehicle_sources import ImageDirectorySource

SOON = 10**18


def write_picture(path: Path, level: int) -> None:
    assert cv2.imwrite(str(path), np.full((40, 60, 3), level, np.uint8))


def open_folder(path: Path, loop: bool = False) -> tuple[ImageDirectory, ScriptedClock]:
    clock = ScriptedClock(mono_ns=10**9)
    source = ImageDirectory(ImageDirectorySource(kind="images", path=path, fps=5, loop=loop), clock)
    source.open()
    return source, clock


def read_all(source: ImageDirectory) -> list[Frame]:
    frames = []
    while True:
        try:
            frame = source.read(SOON)
        except EndOfStream:
            return frames
        assert frame is not None
        frames.append(frame)


def test_pictures_come_in_the_order_of_their_names_at_the_given_pace(tmp_path: Path) -> None:
    for level, name in ((30, "c.png"), (10, "a.png"), (20, "b.PNG")):
        write_picture(tmp_path / name.lower(), level)
        if name != name.lower():
            (tmp_path / name.lower()).rename(tmp_path / name)
    source, _ = open_folder(tmp_path)
    frames = read_all(source)
    assert [int(frame.pixels[0, 0, 0]) for frame in frames] == [10, 20, 30]
    assert [frame.captured_mono_ns for frame in frames] == [10**9, 12 * 10**8, 14 * 10**8]
    assert [frame.number for frame in frames] == [0, 1, 2]


def test_nothing_comes_before_its_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        write_picture(tmp_path / name, 50)
    source, clock = open_folder(tmp_path)
    assert source.read(clock.mono_ns()) is not None
    assert source.read(clock.mono_ns() + 10**8) is None
    assert source.read(clock.mono_ns() + 10**8) is not None


def test_a_loop_starts_again(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", 1)
    write_picture(tmp_path / "b.png", 2)
    source, _ = open_folder(tmp_path, loop=True)
    frames = [source.read(SOON) for _ in range(5)]
    assert [int(frame.pixels[0, 0, 0]) for frame in frames if frame] == [1, 2, 1, 2, 1]


def test_unreadable_pictures_are_skipped_and_counted(tmp_path: Path) -> None:
    write_picture(tmp_path / "b.jpg", 90)
    whole = (tmp_path / "b.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "c.png").write_bytes(b"")
    (tmp_path / "d.png").write_text("not a picture")
    source, _ = open_folder(tmp_path)
    assert len(read_all(source)) == 1
    assert source.rejected == 3


def test_an_unreadable_picture_is_named_once_however_often_it_comes_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_picture(tmp_path / "b.jpg", 90)
    (tmp_path / "a.jpg").write_bytes((tmp_path / "b.jpg").read_bytes()[:-20])
    source, _ = open_folder(tmp_path, loop=True)
    for _ in range(5):
        assert source.read(SOON) is not None
    assert source.rejected >= 5
    assert caplog.messages == [f"left out {tmp_path / 'a.jpg'}: a JPEG that is cut (no end marker)"]


def test_a_folder_full_of_unreadable_pictures_does_not_flood_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_picture(tmp_path / "z.png", 90)
    for number in range(100):
        (tmp_path / f"{number:03d}.jpg").write_bytes(b"")
    source, _ = open_folder(tmp_path)
    assert len(read_all(source)) == 1
    assert source.rejected == 100
    assert len(caplog.messages) == images.MOST_TOLD
    assert caplog.messages[-1].endswith("019.jpg: an empty file; further ones are only counted")


def test_pipes_links_in_a_loop_folders_and_other_files_are_no_pictures(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png", 1)
    os.mkfifo(tmp_path / "b.png")
    (tmp_path / "c.png").symlink_to(tmp_path / "d.png")
    (tmp_path / "d.png").symlink_to(tmp_path / "c.png")
    (tmp_path / "e.png").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    source, _ = open_folder(tmp_path)
    assert len(read_all(source)) == 1
    assert source.rejected == 0


def test_a_folder_without_pictures_is_a_camera_error(tmp_path: Path) -> None:
    with pytest.raises(CameraError, match="no readable picture") as caught:
        open_folder(tmp_path)
    assert caught.value.exit_code == 5


def test_a_folder_of_unreadable_pictures_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(CameraError, match="1 unreadable"):
        open_folder(tmp_path)


def test_a_missing_folder_is_a_camera_error(tmp_path: Path) -> None:
    with pytest.raises(CameraError, match="No such file"):
        open_folder(tmp_path / "nowhere")


def test_a_folder_of_any_size_is_listed_in_order_a_part_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "NAMES_AT_ONCE", 4)
    for number in range(11):
        write_picture(tmp_path / f"{number:02d}.png", number)
    source, _ = open_folder(tmp_path)
    assert [int(frame.pixels[0, 0, 0]) for frame in read_all(source)] == list(range(11))
