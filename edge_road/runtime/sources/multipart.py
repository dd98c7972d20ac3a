"""The pictures of an HTTP multipart stream, cut out of its bytes: pure and bounded."""

from __future__ import annotations

import re

LARGEST_HEADER_BYTES = 8 * 1024
LARGEST_PICTURE_BYTES = 16 * 2**20
_LENGTH = re.compile(rb"(?i)\r?\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r?\n")
_BOUNDARY = re.compile(
    r"(?i)multipart/[a-z-]+\s*;(?:.*;)?\s*boundary=(?P<quote>\"?)(?:--)?(?P<text>[A-Za-z0-9'()+_,./:=?-]{1,70})(?P=quote)"
    r"\s*(?:;.*)?"
)


def boundary_of(content_type: str) -> bytes | None:
    match = _BOUNDARY.fullmatch(content_type)
    return match["text"].encode() if match else None


class PictureParts:
    """Feed it bytes as they come; it gives each part's content once it is complete."""

    def __init__(self, boundary: bytes) -> None:
        self._marker = b"--" + boundary
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """A ValueError means that this is no stream of pictures (any more)."""
        self._buffer += chunk
        parts = []
        while (part := self._cut()) is not None:
            parts.append(part)
        if len(self._buffer) > LARGEST_PICTURE_BYTES + LARGEST_HEADER_BYTES:
            raise ValueError(f"a picture of more than {LARGEST_PICTURE_BYTES >> 20} MB")
        return parts

    def _cut(self) -> bytes | None:
        """The next whole part, or none; what lies before its marker is thrown away."""
        start = self._buffer.find(self._marker)
        if start < 0:
            return None
        end = self._buffer.find(b"\r\n\r\n", start, start + LARGEST_HEADER_BYTES)
        if end < 0:
            if len(self._buffer) - start > LARGEST_HEADER_BYTES:
                raise ValueError("a part without an end of its header")
            return None
        body = end + 4
        stop = self._end_of_body(bytes(self._buffer[start : end + 2]), body)
        if stop is None:
            return None
        part = bytes(self._buffer[body:stop])
        del self._buffer[:stop]
        return part

    def _end_of_body(self, header: bytes, body: int) -> int | None:
        if length := _LENGTH.search(header):
            stop = body + int(length[1])
            if stop - body > LARGEST_PICTURE_BYTES:
                raise ValueError(f"a picture of {length[1].decode()} bytes")
            return stop if stop <= len(self._buffer) else None
        stop = self._buffer.find(b"\r\n" + self._marker, body)
        return None if stop < 0 else stop
