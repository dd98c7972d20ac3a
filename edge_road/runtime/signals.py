"""Requests to stop or to read the settings again, from a signal or from within."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD_SIGNALS = (signal.SIGHUP, signal.SIGUSR1)


class Requests:
    """The first reason to stop stays."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.reload = False

    def because(self, reason: str) -> None:
        self.reason = self.reason or reason

    def ask_reload(self) -> None:
        self.reload = True

    def take_reload(self) -> bool:
        asked, self.reload = self.reload, False
        return asked


EARLY = Requests()
"""what was asked before the loop could answer"""


@contextmanager
def answer_early() -> Iterator[None]:
    """While inside, nothing is open yet or any more that would have to be closed: to stop is to end, with 0.

    Without an exception, as Ctrl-C would be: amid imports one can get lost.
    """
    with _answered(EARLY.ask_reload, lambda: os._exit(0)):
        yield


@contextmanager
def watch_signals() -> Iterator[Requests]:
    """While inside, a signal is a request that the loop sees within one tick."""
    requests = Requests()
    with _answered(requests.ask_reload, lambda: requests.because("shutdown")):
        requests.reload |= EARLY.take_reload()
        yield requests


@contextmanager
def _answered(reload: Callable[[], None], stop: Callable[[], None]) -> Iterator[None]:
    """SIGHUP asks a service to read its settings again; on a terminal it says that the terminal is gone.

    SIGUSR1 asks for the same wherever it runs.
    """
    on_terminal = os.isatty(0) or os.isatty(2)

    def answer(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1 or (number == signal.SIGHUP and not on_terminal):
            reload()
        else:
            stop()

    before = {number: signal.signal(number, answer) for number in (*STOP_SIGNALS, *RELOAD_SIGNALS)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
