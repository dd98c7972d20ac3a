"""What `--source` understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.runtime.main import _parser
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_options import VehicleOptions, source_table


def vehicle(*words: str) -> Vehicle:
    return VehicleOptions(_parser().parse_args(["--set", "backend=fake", *words])).load()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("synthetic", {"kind": "synthetic"}),
        ("pattern", {"kind": "pattern"}),
        ("v4l2:/dev/video2", {"kind": "v4l2", "device": "/dev/video2"}),
        ("/dev/video0", {"kind": "v4l2", "device": "/dev/video0"}),
        ("csi:1", {"kind": "csi", "sensor": 1}),
        ("rtsp://user:pass@10.0.0.5/stream", {"kind": "rtsp", "url": "rtsp://user:pass@10.0.0.5/stream"}),
        ("http://10.0.0.6:8080/video", {"kind": "mjpeg", "url": "http://10.0.0.6:8080/video"}),
    ],
)
def test_a_camera_in_one_word(text: str, expected: dict[str, object]) -> None:
    source = vehicle("--source", text).source.model_dump()
    assert {name: source[name] for name in expected} == expected


def test_a_source_in_one_word_can_be_adjusted() -> None:
    source = vehicle("--source", "csi:0", "--set", "source.fps=15").source
    assert source.model_dump()["fps"] == 15


@pytest.mark.parametrize(
    "text",
    ["v4l2:", "v4l2:/etc/passwd", "/dev/sda", "csi:", "csi:99", "csi:x", "rtsp:", "rtsp://a b", "file:///etc/passwd",
     "concat:a|b", "rtsp://h/\n", "nowhere.mp4"],
)  # fmt: skip
def test_hostile_and_mistaken_sources_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        vehicle("--source", text)


def test_a_password_is_not_repeated_in_the_error() -> None:
    with pytest.raises(ConfigError) as refused:
        vehicle("--source", "rtsp://user:hunter2@h/ä")
    assert "hunter2" not in str(refused.value)


def test_a_folder_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "drive.mp4").write_bytes(b"")
    assert vehicle("--source", str(tmp_path)).source.kind == "images"
    assert vehicle("--source", str(tmp_path / "drive.mp4")).source.kind == "video"


def test_an_empty_source_is_no_folder() -> None:
    with pytest.raises(ConfigError, match="no such source"):
        source_table("")
