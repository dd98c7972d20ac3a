"""What every source of frames offers, and the pace at which frames come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from edge_road.clock import Clock, utc_text
from edge_road.frames import Frame, Image
from edge_road.runtime.quality import DECODE


class EndOfStream(Exception):
    """The source has delivered its last frame; this is not an error."""


@dataclass(frozen=True)
class Unreadable:
    """A picture that came, but cannot be shown: it tells of the camera, not of the road."""

    number: int
    captured_mono_ns: int
    captured_utc: str | None = None
    problem: str = DECODE


class Source(Protocol):
    """Opened, read and closed by one thread. Trouble is a CameraError."""

    @property
    def live(self) -> bool:
        """A camera, which may come later or again; a file that is not there is a mistake."""
        ...

    @property
    def description(self) -> str: ...

    @property
    def period_s(self) -> float:
        """Expected time from one frame to the next; known once open."""
        ...

    @property
    def origin_ns(self) -> int:
        """When the source's own time began; known once open."""
        ...

    @property
    def rejected(self) -> int:
        """Pictures that could not be decoded, since the start."""
        ...

    def open(self) -> None: ...

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        """The next picture, or none when it has not come by the deadline."""
        ...

    def close(self) -> None: ...


def stamped(pixels: Image, number: int, captured_ns: int, clock: Clock) -> Frame:
    return Frame(pixels, number, captured_ns, utc_text(clock.utc()))


class RisingTimes:
    """The time stamps of a stream: one that repeats or goes back marks a frame that is not new."""

    def __init__(self) -> None:
        self._newest: float | None = None

    def rises(self, time: float | None) -> bool:
        """A frame without a time stamp counts as new; that it is not shows in its bytes (frozen)."""
        if time is None:
            return True
        if self._newest is not None and time <= self._newest:
            return False
        self._newest = time
        return True


class Lag:
    """How much longer than the quickest one a picture was under way, by the camera's own time stamps.

    What waited in a buffer is old although it has just come. The two clocks drift apart, by `DRIFT` at most.
    """

    DRIFT = 1e-4

    def __init__(self) -> None:
        self._quickest_s: float | None = None
        self._arrived_s = 0.0

    def behind_s(self, arrived_s: float, time_s: float | None) -> float:
        if time_s is None:
            return 0.0
        under_way_s = arrived_s - time_s
        if self._quickest_s is not None:
            drifted_s = self._quickest_s + self.DRIFT * (arrived_s - self._arrived_s)
            self._quickest_s = min(drifted_s, under_way_s)
        else:
            self._quickest_s = under_way_s
        self._arrived_s = arrived_s
        return under_way_s - self._quickest_s


class Intact:
    """Pictures of a coded stream build upon each other: damage to one spoils all until the next key picture.

    A stream that refreshes itself bit by bit has no key pictures; it is trusted again after `HEALS_S`.
    """

    HEALS_S = 2.5

    def __init__(self) -> None:
        self._spoilt_s: float | None = None

    def spoil(self, time_s: float) -> None:
        self._spoilt_s = time_s

    def is_whole(self, is_corrupt: bool, is_key: bool, time_s: float) -> bool:
        if is_corrupt:
            self.spoil(time_s)
        elif is_key or (self._spoilt_s is not None and time_s - self._spoilt_s >= self.HEALS_S):
            self._spoilt_s = None
        return self._spoilt_s is None


class Pacer:
    """Turns frame numbers into moments, and waits for them."""

    def __init__(self, clock: Clock, fps: float, origin_ns: int) -> None:
        self._clock, self._fps, self._origin_ns = clock, fps, origin_ns

    def due_ns(self, number: int) -> int:
        return self._origin_ns + round(number / self._fps * 1e9)

    def current(self) -> int:
        """The number of the frame that a camera of this rate would have taken last."""
        return int((self._clock.mono_ns() - self._origin_ns) / 1e9 * self._fps)

    def wait_for(self, number: int, deadline_ns: int) -> bool:
        """Sleep until the frame is due; false when the deadline comes first."""
        return wait_until(self._clock, self.due_ns(number), deadline_ns)


def wait_until(clock: Clock, due_ns: int, deadline_ns: int) -> bool:
    clock.sleep((min(due_ns, deadline_ns) - clock.mono_ns()) / 1e9)
    return due_ns <= max(clock.mono_ns(), deadline_ns)
