from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from edge_road.config import load_settings
from edge_road.errors import ConfigError
from edge_road.runtime.camera_address import checked_address
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_sources import CsiSource, SourceSettings

RTSP = ("rtsp", "rtsps")
SOURCE: TypeAdapter[object] = TypeAdapter(SourceSettings)


@pytest.mark.parametrize(
    "text",
    [
        "rtsp://192.168.1.20/stream1",
        "rtsp://camera.local:8554/road?channel=1&subtype=0",
        "rtsps://user:p%40ss@camera-3.depot.example/a/b",
        "rtsp://[fe80::1]:554/x",
    ],
)
def test_ordinary_addresses_pass_unchanged(text: str) -> None:
    assert checked_address(text, RTSP) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "file:///etc/passwd",
        "/etc/passwd",
        "concat:/etc/passwd|/etc/shadow",
        "rtsp:/etc/passwd",
        "tee:[f=mpegts]udp://10.0.0.1|x",
        "http://camera/road",
        "rtsp+file://camera/x",
        "RTSP//camera",
        "rtsp://",
        "rtsp:///path",
        "rtsp://-o/x",
        "rtsp://host name/x",
        "rtsp://camera/a b",
        "rtsp://camera/a\nInjected: 1",
        "rtsp://camera/\x00",
        "\nrtsp://camera/x",
        "rtsp://cam\nera/x",
        "rts\tp://camera/x",
        " rtsp://camera/x",
        "rtsp://camera/x\r",
        "rtsp://camera:99999/x",
        "rtsp://camera:port/x",
        "rtsp://us er:x@camera/x",
        "rtsp://camera/x|file:/etc/passwd",
        'rtsp://camera/"; reboot; "',
        "rtsp://camera/`id`",
        "rtsp://camera/#fragment",
        "rtsp://camera/" + "a" * 600,
        "subfile,,start,0,end,9,,:/etc/passwd",
        "rtsp://cam\u0435ra/x",
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        checked_address(text, RTSP)


@pytest.mark.parametrize(
    "device",
    [
        "/dev/video0 ",
        "/dev/mem",
        "../dev/video0",
        "/dev/video0;id",
        "/dev/v4l/by-id/../../mem",
        "video0",
        "/dev/video",
    ],
)
def test_a_device_is_a_video_device_and_nothing_else(device: str) -> None:
    with pytest.raises(ValidationError):
        SOURCE.validate_python({"kind": "v4l2", "device": device})


@pytest.mark.parametrize("device", ["/dev/video0", "/dev/v4l/by-id/usb-046d_HD_Pro_C920-video-index0"])
def test_a_device_can_be_named_by_number_or_identity(device: str) -> None:
    SOURCE.validate_python({"kind": "v4l2", "device": device})


@pytest.mark.parametrize("key", ["sensor", "width", "flip", "fps", "pipeline"])
def test_no_text_gets_into_a_pipeline(key: str) -> None:
    with pytest.raises(ValidationError):
        CsiSource.model_validate({"kind": "csi", key: "0 ! filesink location=/etc/passwd"})


def test_a_refused_address_does_not_show_its_password(tmp_path: Path) -> None:
    path = tmp_path / "van.toml"
    path.write_text('[source]\nkind = "rtsp"\nurl = "rtsp://admin:pl4nted@camera/a b"\n')
    with pytest.raises(ConfigError) as caught:
        load_settings(Vehicle, path)
    assert "pl4nted" not in str(caught.value)
    assert "%XX" in str(caught.value)


def test_settings_do_not_show_passwords_when_printed() -> None:
    settings = SOURCE.validate_python({"kind": "mjpeg", "url": "http://admin:pl4nted@camera/x"})
    assert "pl4nted" not in repr(settings)
