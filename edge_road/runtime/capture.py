"""The thread that reads the camera, and opens it again for ever when it is lost."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from edge_road.clock import Clock, SystemClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.sources.base import EndOfStream, Source, Unreadable

log = logging.getLogger(__name__)

READ_S = 0.2
"""how long one read may wait for a frame"""
FIRST_PAUSE_S = 0.2


class Capture:
    """`take` runs here, beside the model: preparing a picture costs on a CPU about as much as a small one.

    Trouble with a file before its first frame is the caller's; a camera is waited for.
    """

    def __init__(
        self,
        source: Source,
        take: Callable[[Frame | Unreadable], None],
        clock: Clock,
        rate: float,
        longest_pause_s: float,
    ) -> None:
        self._source, self._take, self._clock = source, take, clock
        self.set_rate(rate)
        self._longest_pause_s = longest_pause_s
        self._machine = SystemClock()
        self._call_began_ns: int | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._due_ns = 0
        self.opening = False
        self.ended = False
        self.bug: Exception | None = None

    def set_rate(self, rate: float) -> None:
        """Half a period of tolerance, so that a camera of just this rate is not halved by jitter."""
        self._least_gap_ns, self._period_ns = round(0.5e9 / rate), round(1e9 / rate)

    def start(self) -> None:
        """A file is opened in the calling thread, so that its trouble is seen there."""
        if not self._source.live:
            self._source.open()
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        self._stopping.set()
        self._thread.join(timeout_s)

    def stuck_s(self) -> float:
        """How long the call to the camera that is under way, or what is done with its picture, has taken."""
        began_ns = self._call_began_ns
        return 0.0 if began_ns is None else (self._machine.mono_ns() - began_ns) / 1e9

    def _run(self) -> None:
        try:
            self._read_for_ever()
        except EndOfStream:
            self.ended = True
        except Exception as error:
            self.bug = error
        finally:
            self._source.close()

    def _read_for_ever(self) -> None:
        if self._source.live:
            self._open_for_ever(first_pause_s=0.0)
        while not self._stopping.is_set():
            try:
                self._read_until_trouble()
            except CameraError as error:
                log.warning("the camera is opened again: %s", error)
                self._open_for_ever(FIRST_PAUSE_S)

    def _read_until_trouble(self) -> None:
        while not self._stopping.is_set():
            with self._watched():
                picture = self._source.read(self._clock.mono_ns() + round(READ_S * 1e9))
                if isinstance(picture, Unreadable) or (picture is not None and self._is_due(picture)):
                    self._take(picture)

    def _is_due(self, frame: Frame) -> bool:
        """Thin out a camera that is faster than the wanted rate."""
        if frame.captured_mono_ns < self._due_ns - self._least_gap_ns:
            return False
        self._due_ns = max(self._due_ns + self._period_ns, frame.captured_mono_ns + self._least_gap_ns)
        return True

    def _open_for_ever(self, first_pause_s: float) -> None:
        """Pauses double from 0.2 s on and vary, so that many vehicles do not call one server in step."""
        pause_s, said = first_pause_s, ""
        while not self._stopping.wait(pause_s * random.uniform(0.75, 1.25)):
            self.opening = True
            try:
                with self._watched():
                    self._source.close()
                    self._source.open()
                log.warning("the camera is there: %s", self._source.description)
                return
            except CameraError as error:
                if str(error) != said:  # the same trouble is told once
                    log.warning("the camera is waited for: %s", error)
                said = str(error)
                pause_s = min(max(FIRST_PAUSE_S, 2 * pause_s), self._longest_pause_s)
            finally:
                self.opening = False

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self._call_began_ns = self._machine.mono_ns()
        try:
            yield
        finally:
            self._call_began_ns = None
