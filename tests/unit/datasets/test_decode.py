"""Pictures are decoded whole, upright and in RGB, or refused with the reason."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_road.datasets.decode import decode_image, read_image
from edge_road.errors import DataError
from edge_road.frames import Image


def smooth_picture(height: int = 48, width: int = 64) -> Image:
    corners = np.random.default_rng(7).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(corners, (width, height), interpolation=cv2.INTER_CUBIC), dtype=np.uint8)


def encode(picture: np.ndarray, suffix: str = ".jpg", *options: int) -> bytes:
    bgr = picture[..., [2, 1, 0, *range(3, picture.shape[2])]] if picture.ndim == 3 else picture
    return cv2.imencode(suffix, bgr, list(options))[1].tobytes()


def with_app1(jpeg: bytes, payload: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + jpeg[2:]


def exif(orientation: int) -> bytes:
    entry = struct.pack("<HHII", 0x0112, 3, 1, orientation)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + struct.pack("<I", 0)


WHOLE = {
    "jpeg": encode(smooth_picture()),
    "progressive jpeg": encode(smooth_picture(), ".jpg", cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    "jpeg with restarts": encode(smooth_picture(), ".jpg", cv2.IMWRITE_JPEG_RST_INTERVAL, 2),
    "jpeg with a thumbnail": with_app1(encode(smooth_picture()), encode(smooth_picture(8, 8))),
    "png": encode(smooth_picture(), ".png"),
    "16-bit png": encode(smooth_picture().astype(np.uint16) * 257, ".png"),
    "png with alpha": encode(np.dstack([smooth_picture(), np.full((48, 64), 9, np.uint8)]), ".png"),
    "bmp": encode(smooth_picture(), ".bmp"),
    "webp": encode(smooth_picture(), ".webp", cv2.IMWRITE_WEBP_QUALITY, 90),
    "lossless webp": encode(smooth_picture(), ".webp", cv2.IMWRITE_WEBP_QUALITY, 101),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_every_format_gives_the_same_rgb_picture(kind: str) -> None:
    decoded = decode_image(WHOLE[kind], kind)
    assert decoded.dtype == np.uint8
    assert decoded.shape == (48, 64, 3)
    assert np.abs(decoded.astype(int) - smooth_picture()).mean() < 6


def test_a_grey_picture_becomes_three_equal_channels() -> None:
    decoded = decode_image(encode(smooth_picture()[..., 0]), "grey")
    assert decoded.shape == (48, 64, 3)
    assert (decoded[..., 0] == decoded[..., 2]).all()


@pytest.mark.parametrize("kind", WHOLE)
def test_a_cut_picture_is_refused_at_every_length(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenCV fills what is missing of a JPEG with grey and says nothing, so it must not be asked."""
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("the decoder saw a cut picture"))
    for length in range(len(WHOLE[kind])):
        with pytest.raises(DataError, match="picture"):
            decode_image(WHOLE[kind][:length], kind)


def test_bytes_after_the_end_of_a_jpeg_do_no_harm() -> None:
    assert decode_image(WHOLE["jpeg"] + b"maker notes", "phone").shape == (48, 64, 3)


@pytest.mark.parametrize(("orientation", "turns"), [(1, 0), (6, 3), (3, 2), (8, 1)])
def test_a_picture_taken_sideways_is_set_upright(orientation: int, turns: int) -> None:
    plain = decode_image(WHOLE["jpeg"], "plain")
    turned = decode_image(with_app1(WHOLE["jpeg"], exif(orientation)), "turned")
    assert np.array_equal(turned, np.rot90(plain, turns))


def _patched_frame(position: int, value: bytes) -> bytes:
    start = WHOLE["jpeg"].index(b"\xff\xc0") + 4 + position
    return WHOLE["jpeg"][:start] + value + WHOLE["jpeg"][start + len(value) :]


def _with_second_frame() -> bytes:
    """A small size after a large one: which one would a decoder believe?"""
    start = WHOLE["jpeg"].index(b"\xff\xc0")
    large = WHOLE["jpeg"][start : start + 5] + struct.pack(">HH", 60_000, 60_000)
    segment = large + WHOLE["jpeg"][start + 9 : start + 19]
    return WHOLE["jpeg"][:start] + segment + WHOLE["jpeg"][start:]


def _png_of(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    rows = zlib.compress(bytes((width + 7) // 8 + 1) * height, 9)
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"<html>404</html>", "neither JPEG"),
        (b"GIF89a" + bytes(100), "neither JPEG"),
        (_patched_frame(1 + 4, b"\x04"), "CMYK"),
        (_patched_frame(0, b"\x0c"), "12 bits"),
        (_patched_frame(1, struct.pack(">HH", 60_000, 60_000)), "60000 x 60000"),
        (_png_of(16_000, 16_000), "16000 x 16000"),
        (_png_of(0, 10), "0 x 10"),
        (_with_second_frame(), "two sizes"),
        (WHOLE["jpeg"][:200] + b"\0" * 50 + WHOLE["jpeg"][250:], "JPEG"),
    ],
)
def test_what_is_no_sound_picture_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(DataError) as refusal:
        decode_image(content, "camera/17.jpg")
    assert reason in refusal.value.details["got"]
    assert "camera/17.jpg" in str(refusal.value)


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("the decoder saw the bomb"))
    with pytest.raises(DataError):
        decode_image(_png_of(16_000, 16_000), "bomb")


def test_a_pipe_under_a_pictures_name_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(DataError, match="plain file"):
        read_image(tmp_path / "pipe.jpg")


def test_a_missing_picture_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.jpg"):
        read_image(tmp_path / "gone.jpg")


def test_real_photographs_decode(shared_data: Path) -> None:
    paths = sorted((shared_data / "rscd_sample").glob("*.jpg"))
    assert paths
    for path in paths:
        assert read_image(path).shape == (360, 240, 3)
