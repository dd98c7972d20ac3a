"""From the bytes of a picture file to RGB pixels, or a clear refusal: never grey filling, never a bomb."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import cv2
import numpy as np

from edge_road.datasets.headers import check_header
from edge_road.errors import DataError
from edge_road.frames import Image

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
FOREIGN_SUFFIXES = (
    ".tif",
    ".tiff",
    ".gif",
    ".heic",
    ".heif",
    ".avif",
    ".jp2",
    ".jxl",
    ".dng",
    ".cr2",
    ".cr3",
    ".nef",
    ".arw",
    ".rw2",
    ".orf",
    ".raf",
    ".ppm",
    ".pgm",
    ".jfif",
)
"""pictures too, but of formats or under names that are not read"""
VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mts")
LARGEST_FILE_BYTES = 256 * 2**20


def decode_image(content: bytes, where: object) -> Image:
    """RGB uint8 H x W x 3, upright by EXIF; grey becomes RGB, alpha is dropped, 16 bits become 8."""
    check_header(content, where)
    try:
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise DataError("the picture cannot be decoded", where=where, got=error) from None
    if pixels is None:
        raise DataError("the picture cannot be decoded", where=where, got=f"{len(content)} damaged bytes")
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2RGB), dtype=np.uint8)


def read_image(path: Path) -> Image:
    return decode_image(read_file(path), path)


def read_file(path: Path) -> bytes:
    """A pipe or a device under a picture's name would block or never end: only plain files are read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DataError("not a plain file", where=path)
            if status.st_size > LARGEST_FILE_BYTES:
                raise DataError("the file is too large for a picture", where=path, got=f"{status.st_size} B")
            return file.read(LARGEST_FILE_BYTES)
    except OSError as error:
        raise DataError("the picture cannot be read", where=path, got=error.strerror) from None
