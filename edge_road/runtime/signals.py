"""A request to stop, from a signal or from within."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """The first reason stays."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def because(self, reason: str) -> None:
        self.reason = self.reason or reason


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """While inside, a signal asks to stop; the loop sees it within one tick."""
    request = StopRequest()

    def ask(number: int, frame: FrameType | None) -> None:
        request.because("shutdown")

    before = {number: signal.signal(number, ask) for number in STOP_SIGNALS}
    try:
        yield request
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
