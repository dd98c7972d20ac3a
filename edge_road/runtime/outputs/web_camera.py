"""The live picture for many pages: one answer that goes on, at a fifth of what a request each would cost.

A picture is four bytes of length, most significant first, and a JPEG; length 0 says that there is none.
A slow reader gets fewer pictures and never old ones: the next is read when the last one has left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

LOOK_S = 0.1
"""twice as often as a picture is made"""
AT_LEAST_S = 1.0
"""the same picture again: a reader that hears nothing for long takes the camera for dead"""


class CameraFeed:
    """All readers share what was read from the disk a moment ago."""

    def __init__(self, newest_picture: Callable[[], bytes | None], most_readers: int) -> None:
        self._newest_picture, self._most_readers = newest_picture, most_readers
        self._readers = 0
        self._picture, self._read_s = b"", float("-inf")

    def stream(self, goes_on: Callable[[], bool]) -> AsyncIterator[bytes] | None:
        """None when the house is full."""
        return None if self._readers >= self._most_readers else self._pictures(goes_on)

    async def _pictures(self, goes_on: Callable[[], bool]) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        shown, shown_s = None, loop.time()
        self._readers += 1  # here: what is never begun would never be ended
        try:
            while goes_on():
                picture = self._newest(loop.time())
                if picture is not shown or loop.time() >= shown_s + AT_LEAST_S:
                    shown, shown_s = picture, loop.time()
                    yield len(picture).to_bytes(4, "big") + picture
                await asyncio.sleep(LOOK_S)
        finally:
            self._readers -= 1

    def _newest(self, now_s: float) -> bytes:
        if now_s >= self._read_s + LOOK_S / 2:
            self._read_s = now_s
            picture = self._newest_picture() or b""
            if picture != self._picture:
                self._picture = picture
        return self._picture
