"""The only place that reads a clock: intervals are monotonic, UTC is for people."""

from __future__ import annotations

import ctypes
import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    def mono_ns(self) -> int: ...

    def utc(self) -> datetime: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def mono_ns(self) -> int:
        return time.monotonic_ns()

    def utc(self) -> datetime:
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class FastClock:
    """Runs `speed` times as fast as time does; all processes of a machine agree on it.

    Intervals, and so every deadline built on them, pass faster; UTC stays what it is.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed

    def mono_ns(self) -> int:
        return int(time.monotonic_ns() * self._speed)

    def utc(self) -> datetime:
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds / self._speed))


def clock_of_speed(speed: float) -> Clock:
    return SystemClock() if speed == 1.0 else FastClock(speed)


class ScriptedClock:
    """A clock that moves only when told to; sleeping moves it."""

    def __init__(self, mono_ns: int = 0, utc: datetime | None = None) -> None:
        self._mono_ns = mono_ns
        self._utc = utc or datetime(2026, 1, 1, tzinfo=timezone.utc)
        self._start_ns = mono_ns

    def mono_ns(self) -> int:
        return self._mono_ns

    def utc(self) -> datetime:
        return datetime.fromtimestamp(
            self._utc.timestamp() + (self._mono_ns - self._start_ns) / 1e9, timezone.utc
        )

    def sleep(self, seconds: float) -> None:
        self._mono_ns += max(0, round(seconds * 1e9))


def utc_text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
_LIBC = ctypes.CDLL(None, use_errno=True)


def clock_synced() -> bool:
    """Whether the kernel holds UTC to be right, i.e. a time service disciplines it."""
    timex = ctypes.create_string_buffer(512)  # larger than struct timex; modes = 0 only reads
    state = _LIBC.adjtimex(timex)
    return bool(state >= 0 and state != _TIME_ERROR)
