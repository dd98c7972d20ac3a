"""What a picture file says of its colours, depth and orientation, whether or not it can be used.

JPEG: ITU-T T.81 annex B; orientation: tag 0x0112 of EXIF 2.3; PNG: ISO/IEC 15948.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_APP1, _START_OF_SCAN = 0xE1, 0xDA
_PNG = b"\x89PNG\r\n\x1a\n"
_ORIENTATION_TAG = 0x0112


@dataclass(frozen=True)
class Facts:
    width: int = 0
    height: int = 0
    bits: int = 8
    """of one colour"""
    cmyk: bool = False
    orientation: int = 1
    """EXIF: 1 is upright, 3, 6 and 8 are turned, the others mirrored"""


def read_facts(content: bytes) -> Facts:
    """What can be read; a damaged or foreign file gives the defaults."""
    try:
        if content.startswith(b"\xff\xd8"):
            return _of_jpeg(content)
        if content.startswith(_PNG):
            return _of_png(content)
    except (struct.error, IndexError):
        pass
    return Facts()


def _of_jpeg(content: bytes) -> Facts:
    frame, orientation = (8, 0, 0, 3), 1
    for marker, segment in _jpeg_segments(content):
        if marker in _START_OF_FRAME:
            frame = struct.unpack_from(">BHHB", segment)
        elif marker == _APP1 and segment.startswith(b"Exif\0\0"):
            orientation = _orientation(segment[6:])
    bits, height, width, components = frame
    return Facts(width, height, bits, components == 4, orientation)


def _jpeg_segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """All segments before the first scan."""
    position = 2
    while content[position] == 0xFF:
        marker = content[position + 1]
        if marker == 0xFF:
            position += 1
            continue
        if marker == _START_OF_SCAN:
            return
        (length,) = struct.unpack_from(">H", content, position + 2)
        yield marker, content[position + 4 : position + 2 + length]
        position += 2 + length


def _of_png(content: bytes) -> Facts:
    width, height, bits = struct.unpack_from(">IIB", content, 16)
    orientation, position = 1, len(_PNG)
    while position + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind == b"eXIf":
            orientation = _orientation(content[position + 8 : position + 8 + length])
        position += 12 + length
    return Facts(width, height, bits, orientation=orientation)


def _orientation(tiff: bytes) -> int:
    """The tag in the first directory of an EXIF block (a TIFF header and entries of 12 bytes)."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, start)
        for number in range(entries):
            tag, _, _, value = struct.unpack_from(order + "HHIH", tiff, start + 2 + 12 * number)
            if tag == _ORIENTATION_TAG:
                return int(value) if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1
