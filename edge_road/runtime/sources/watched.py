"""A folder into which a camera program puts pictures: each is judged when it is complete."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from pathlib import Path

from edge_road.clock import Clock, utc_text
from edge_road.datasets.decode import IMAGE_SUFFIXES, read_image
from edge_road.errors import CameraError, DataError
from edge_road.frames import Frame
from edge_road.runtime.sources.base import Unreadable, stamped
from edge_road.runtime.vehicle_sources import ImageDirectorySource

# inotify(7)
_CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _DELETE_SELF, _MOVE_SELF, _IGNORED, _OVERFLOW = (
    0x8,
    0x40,
    0x80,
    0x400,
    0x800,
    0x8000,
    0x4000,
)
_GONE = _DELETE_SELF | _MOVE_SELF | _IGNORED
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)


class WatchedDirectory:
    """The kernel tells the names (inotify), so a folder of a million files is never listed."""

    live = True
    origin_ns = 0

    def __init__(self, settings: ImageDirectorySource, clock: Clock) -> None:
        self.description = f"new pictures in {settings.path}"
        self.period_s = 1 / settings.fps
        self.rejected = 0
        self._folder, self._clock = settings.path, clock
        self._descriptor: int | None = None
        self._number = 0
        self._aside: set[str] = set()
        """other files just written: perhaps pictures that are about to be moved into place"""

    def open(self) -> None:
        self._descriptor = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
        watch = _LIBC.inotify_add_watch(self._descriptor, os.fsencode(self._folder), mask)
        if self._descriptor < 0 or watch < 0:
            got = os.strerror(ctypes.get_errno())
            raise CameraError("the folder cannot be watched", where=self._folder, got=got)
        self.origin_ns = self._clock.mono_ns()

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        """The newest of the pictures that have come; older ones that nobody read are passed over."""
        name = self._newest_name((deadline_ns - self._clock.mono_ns()) / 1e9)
        if name is None:
            return None
        self._number += 1
        now_ns = self._clock.mono_ns()
        try:
            return stamped(read_image(self._folder / name), self._number, now_ns, self._clock)
        except DataError:
            self.rejected += 1
            return Unreadable(self._number, now_ns, utc_text(self._clock.utc()))

    def close(self) -> None:
        if self._descriptor is not None and self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = None

    def _newest_name(self, timeout_s: float) -> str | None:
        assert self._descriptor is not None
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        came = poll.poll(max(0.0, timeout_s) * 1000)
        return self._parse(os.read(self._descriptor, 64 * 1024) if came else b"")

    def _parse(self, events: bytes) -> str | None:
        newest: str | None = None
        position, waiting, self._aside = 0, self._aside, set()
        while position < len(events):
            _, mask, _, length = _EVENT.unpack_from(events, position)
            position += _EVENT.size + length
            name = os.fsdecode(events[position - length : position].rstrip(b"\0"))
            if mask & _GONE:
                raise CameraError("the folder of pictures is gone", where=self._folder)
            if not name or mask & _OVERFLOW:
                continue
            if mask & _MOVED_FROM:
                waiting.discard(name)
                self._aside.discard(name)
            elif Path(name).suffix.lower() in IMAGE_SUFFIXES and not name.startswith("."):
                newest = name
            elif mask & _CLOSE_WRITE:
                self._aside.add(name)
            else:
                self.rejected += 1
        self.rejected += len(waiting - self._aside)
        return newest
