"""The place between camera and model: it holds one frame, and the newest wins."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Item = TypeVar("Item")


class NewestFrameSlot(Generic[Item]):
    """One thread puts, another takes; a frame that nobody took in time is dropped and counted."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._frame: Item | None = None
        self.frames = self.dropped = 0

    def put(self, frame: Item) -> None:
        with self._changed:
            self.frames += 1
            self.dropped += self._frame is not None
            self._frame = frame
            self._changed.notify()

    def take(self, timeout_s: float) -> Item | None:
        """The newest frame that was not taken yet; none when there is no such frame in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None, timeout_s)
            frame, self._frame = self._frame, None
            return frame
