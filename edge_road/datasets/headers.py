"""What a picture file says of itself, read before any decoder sees it: format, size, completeness.

Decoders fill the missing part of a cut JPEG with grey, and a few kilobytes of PNG can unpack to
gigabytes, so both are refused here (JPEG: ITU-T T.81 annex B; PNG: ISO/IEC 15948 section 5).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from edge_road.errors import DataError

LARGEST_PIXELS = 50_000_000

_PNG = b"\x89PNG\r\n\x1a\n"
# In entropy-coded data a marker is 0xff and anything but a stuffed 0, a restart or more filling.
_MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD8)}

Size = tuple[int, int]


class _Refused(Exception):
    """Why the bytes are no whole picture."""


def check_header(content: bytes, where: object) -> Size:
    """(width, height); raises DataError for what is cut, foreign or too large."""
    try:
        width, height = _reader(content)(content)
        if width < 1 or height < 1:
            raise _Refused(f"a size of {width} x {height}")
        if width * height > LARGEST_PIXELS:
            raise _Refused(f"{width} x {height} pixels, more than {LARGEST_PIXELS // 10**6} million")
    except _Refused as reason:
        raise DataError("the picture is refused", where=where, got=reason) from None
    except (struct.error, IndexError):
        raise DataError("the picture is refused", where=where, got="a cut header") from None
    return width, height


def _reader(content: bytes) -> Callable[[bytes], Size]:
    if content.startswith(b"\xff\xd8"):
        return _jpeg
    if content.startswith(_PNG):
        return _png
    if content.startswith(b"BM"):
        return _bmp
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return _webp
    if not content:
        raise _Refused("an empty file")
    raise _Refused("neither JPEG, PNG, BMP nor WebP")


def _jpeg(content: bytes) -> Size:
    """Walk all segments and scans to the end marker; a thumbnail's own end marker lies in a segment."""
    size: Size | None = None
    position = 2
    while True:
        if content[position] != 0xFF:
            raise _Refused("a damaged JPEG (no marker where one belongs)")
        marker = content[position + 1]
        position += 1 if marker == 0xFF else 2
        if marker == _END_OF_IMAGE:
            break
        if marker == 0xFF or marker in _WITHOUT_LENGTH:
            continue
        if marker in _START_OF_FRAME:
            if size is not None:
                raise _Refused("a JPEG with two sizes")
            size = _jpeg_frame(content[position : position + 8])
        position += struct.unpack_from(">H", content, position)[0]
        if marker == _START_OF_SCAN:
            position = _after_scan(content, position)
    if size is None:
        raise _Refused("a JPEG without a picture")
    return size


def _jpeg_frame(segment: bytes) -> Size:
    _, bits, height, width, components = struct.unpack(">HBHHB", segment)
    if bits != 8:
        raise _Refused(f"a JPEG of {bits} bits a colour; convert it to 8")
    if components == 4:
        raise _Refused("a CMYK JPEG (colours of print); convert it to RGB")
    return width, height


def _after_scan(content: bytes, position: int) -> int:
    match = _MARKER_IN_SCAN.search(content, position)
    if match is None:
        raise _Refused("a JPEG that is cut (no end marker)")
    return match.start()


def _png(content: bytes) -> Size:
    if content[12:16] != b"IHDR":
        raise _Refused("a PNG without a header")
    position = len(_PNG)
    while True:
        length, kind = struct.unpack_from(">I4s", content, position)
        position += 12 + length
        if position > len(content):
            raise _Refused("a PNG that is cut")
        if kind == b"IEND":
            return struct.unpack_from(">II", content, 16)


def _bmp(content: bytes) -> Size:
    offset, header = struct.unpack_from("<II", content, 10)
    if header == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", content, 18)
        compression = 0
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", content, 18)
    if compression not in (0, 3):
        raise _Refused("a BMP with compression; save it as PNG")
    row_bytes = (width * bits + 31) // 32 * 4
    if len(content) < offset + row_bytes * abs(height):
        raise _Refused("a BMP that is cut")
    return width, abs(height)


def _webp(content: bytes) -> Size:
    length, kind = struct.unpack_from("<I4x4s", content, 4)
    if len(content) < length + 8:
        raise _Refused("a WebP that is cut")
    if kind == b"VP8X":
        if content[20] & 0x02:
            raise _Refused("an animated WebP; a picture stands still")
        return _three_bytes(content[24:27]) + 1, _three_bytes(content[27:30]) + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", content, 21)[0]
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise _Refused("a WebP without a picture")


def _three_bytes(content: bytes) -> int:
    return int.from_bytes(content, "little")
