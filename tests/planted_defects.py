"""Small road-like pictures in class folders, and every defect that a data check must find."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as Pil

from edge_road.frames import Image

TINTS = {"dry": (120, 110, 100), "wet": (50, 70, 110), "icy": (215, 220, 230)}


def draw_road(label: str, rng: np.random.Generator, side: int = 96) -> Image:
    """The tint of its class over its own smooth landscape."""
    coarse = rng.normal(0, 30, (8, 8)).astype(np.float32)
    field = cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)
    pixels = np.array(TINTS[label]) + field[..., None] + rng.normal(0, 3, (side, side, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def jpeg(image: Image, quality: int = 90, **options: object) -> bytes:
    buffer = BytesIO()
    Pil.fromarray(image).save(buffer, "JPEG", quality=quality, **options)
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def make_folders(root: Path, seed: int = 0, **counts: int) -> Path:
    rng = np.random.default_rng(seed)
    for label, count in counts.items():
        for number in range(count):
            write(root / label / f"{number:03d}.jpg", jpeg(draw_road(label, rng)))
    return root


def cmyk_jpeg(image: Image) -> bytes:
    buffer = BytesIO()
    Pil.fromarray(image).convert("CMYK").save(buffer, "JPEG")
    return buffer.getvalue()


def turned_jpeg(image: Image, orientation: int = 6) -> bytes:
    exif = Pil.Exif()
    exif[0x0112] = orientation
    return jpeg(image, exif=exif.tobytes())


def deep_png(image: Image) -> bytes:
    return bytes(cv2.imencode(".png", image.astype(np.uint16) * 256)[1])


def huge_png(width: int = 20_000, height: int = 20_000) -> bytes:
    """A header that promises 400 million pixels, and next to nothing behind it."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def plant_file_defects(root: Path, seed: int = 99) -> dict[str, str]:
    """key -> kind of the finding that it must get."""
    rng = np.random.default_rng(seed)
    road = [draw_road("dry", rng) for _ in range(9)]
    whole = jpeg(road[0])
    planted = {
        "dry/cut.jpg": (whole[: len(whole) // 2], "unreadable"),
        "dry/no_picture.jpg": (b"<html>404</html>", "unreadable"),
        "dry/nothing.jpg": (b"", "empty_file"),
        "wet/print.jpg": (cmyk_jpeg(road[1]), "cmyk"),
        "wet/bomb.png": (huge_png(), "huge"),
        "wet/deep.png": (deep_png(road[2]), "deep"),
        "icy/turned.jpg": (turned_jpeg(road[3]), "turned"),
        "icy/mirrored.jpg": (turned_jpeg(road[4], 2), "turned"),
        "icy/tiny.jpg": (jpeg(cv2.resize(road[5], (20, 12))), "tiny"),
        "icy/blank.png": (bytes(cv2.imencode(".png", np.full((64, 64, 3), 17, np.uint8))[1]), "blank"),
        "icy/large.jpg": (jpeg(cv2.resize(road[6], (5000, 3400)), 40), "large"),
    }
    for key, (content, _) in planted.items():
        write(root / key, content)
    return {key: kind for key, (_, kind) in planted.items()}


def alike(image: Image) -> dict[str, bytes]:
    """The same picture as it comes back from the web: re-encoded, smaller, brighter, hardly cropped."""
    height, width = image.shape[:2]
    brighter = np.clip(image.astype(np.float32) * 1.08 + 6, 0, 255).astype(np.uint8)
    return {
        "reencoded": jpeg(image, 50),
        "smaller": jpeg(cv2.resize(image, (width * 2 // 3, height * 2 // 3), interpolation=cv2.INTER_AREA)),
        "brighter": jpeg(brighter),
        "as_png": bytes(cv2.imencode(".png", image[..., ::-1])[1]),
    }
