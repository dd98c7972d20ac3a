"""The part that rendered drives and coded patterns share: paced frames of a road with known states."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.files import write_atomically
from edge_road.frames import Frame, Image
from edge_road.runtime.sources.base import EndOfStream, Pacer, Unreadable, stamped


class DriveSource:
    """Like a camera, it skips the frames that nobody was in time to read."""

    rejected = 0
    live = False

    def __init__(
        self, clock: Clock, fps: float, seconds: float, loop: bool, origin_ns: int | None, description: str
    ) -> None:
        self.description, self.period_s = description, 1 / fps
        self.origin_ns = origin_ns or 0
        self._given_origin = origin_ns
        self._clock, self._fps, self._loop = clock, fps, loop
        self._frames = max(1, round(seconds * fps))
        self._last = -1

    def open(self) -> None:
        if self._given_origin is None:
            self._given_origin = self.origin_ns = self._clock.mono_ns()
        self._pacer = Pacer(self._clock, self._fps, self.origin_ns)

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        number = max(self._last + 1, self._pacer.current())
        if number >= self._frames and not self._loop:
            raise EndOfStream
        if not self._pacer.wait_for(number, deadline_ns):
            return None
        self._last = number
        pixels = self.picture(number % self._frames)
        return None if pixels is None else stamped(pixels, number, self._pacer.due_ns(number), self._clock)

    def close(self) -> None:
        pass

    def picture(self, number: int) -> Image | None:
        """The frame of this number; none when the camera gives nothing."""
        raise NotImplementedError


def write_truth(path: Path | None, origin_ns: int, segments: Iterable[tuple[str, float]]) -> None:
    """What the messages of this drive are to be scored against."""
    if path is None:
        return
    known = [{"state": state, "seconds": seconds} for state, seconds in segments]
    truth = {"start_mono_ns": origin_ns, "segments": known}
    try:
        write_atomically(path, json.dumps(truth, indent=2).encode() + b"\n")
    except OSError as error:
        raise CameraError(
            "the truth of the drive cannot be written", where=path, got=error.strerror
        ) from None
