"""The only place that reads a clock: intervals are monotonic, UTC is for people."""

from __future__ import annotations

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
