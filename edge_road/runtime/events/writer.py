"""The one thread that writes events: whoever records one goes on at once."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from edge_road.clock import SystemClock
from edge_road.runtime.events.event import Draft
from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.events.outbox import Outbox

log = logging.getLogger(__name__)

MOST_QUEUED = 4096
MOST_AT_ONCE = 64
"""events in one transaction"""
FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 10.0


@dataclass(frozen=True)
class StorageHealth:
    ok: bool
    detail: str
    waiting: int
    unsaved: int


class EventWriter:
    """record -> commit -> announce; the deliverer reads with `after` and confirms with `delivered`."""

    def __init__(
        self, open_outbox: Callable[[], Outbox], first: Callable[[dict[str, object]], Draft]
    ) -> None:
        """`first` makes the boot event, given what is known of the boot before."""
        self._open_outbox, self._first = open_outbox, first
        self._outbox: Outbox | None = None
        self._drafts: deque[Draft] = deque()
        self._confirmed: deque[Callable[[Outbox], None]] = deque()
        self._overflowed = 0
        self._wake = threading.Event()
        self._lock = threading.Lock()
        """of the outbox; held while the disk works"""
        self._queue = threading.Lock()
        """of drafts and their overflow; never held for long"""
        self._closing = False
        self._listeners: list[Callable[[str], None]] = []
        self._health = StorageHealth(True, "starting", 0, 0)
        self._machine = SystemClock()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def listen(self, listener: Callable[[str], None]) -> None:
        """Called in the writer's thread with every event that is stored."""
        self._listeners.append(listener)

    def record(self, draft: Draft) -> None:
        """Never waits, whatever the disk does."""
        with self._queue:
            if len(self._drafts) >= MOST_QUEUED:
                self._drafts.popleft()
                self._overflowed += 1
            self._drafts.append(draft)
        self._wake.set()

    def after(self, entry_id: int, limit: int) -> list[Entry]:
        with self._lock:
            entries = self._outbox.after(entry_id, limit) if self._outbox else []
            if self._outbox and self._outbox.degraded:  # perhaps since now: the writer mends it
                self._wake.set()
            return entries

    def delivered(self, ids: Iterable[int]) -> None:
        numbers = frozenset(ids)
        self._confirm(lambda outbox: outbox.delivered(numbers))

    def delivered_up_to(self, boot_id: str, seq: int, entry_id: int) -> None:
        self._confirm(lambda outbox: outbox.delivered_up_to(boot_id, seq, entry_id))

    def health(self) -> StorageHealth:
        return self._health

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was recorded so far is stored; false when that takes too long."""
        done = threading.Event()
        self._confirm(lambda outbox: done.set())
        return done.wait(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Writes what is queued, then ends."""
        self._closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _confirm(self, change: Callable[[Outbox], None]) -> None:
        self._confirmed.append(change)
        self._wake.set()

    def _run(self) -> None:
        with self._lock:
            self._outbox = outbox = self._open_outbox()
        self._announce(outbox.record([self._first(outbox.previous)]))
        pause_s, tried_ns = FIRST_RETRY_S, self._machine.mono_ns()
        while True:
            left_s = max(0.0, pause_s - self._since_s(tried_ns))
            self._wake.wait(left_s if outbox.degraded else None)
            self._wake.clear()
            ended = self._closing  # asked first: what was recorded before is still written
            if outbox.degraded and self._since_s(tried_ns) >= pause_s:  # also while events keep coming
                self._recover(outbox)
                pause_s, tried_ns = min(2 * pause_s, LONGEST_RETRY_S), self._machine.mono_ns()
            was_degraded = outbox.degraded
            self._write_queued(outbox)
            if ended:
                return outbox.close()
            if not was_degraded:
                pause_s, tried_ns = FIRST_RETRY_S, self._machine.mono_ns()

    def _since_s(self, then_ns: int) -> float:
        return (self._machine.mono_ns() - then_ns) / 1e9

    def _recover(self, outbox: Outbox) -> None:
        with self._lock:
            fresh = outbox.recover()
        self._announce(fresh)

    def _write_queued(self, outbox: Outbox) -> None:
        while self._drafts or self._confirmed or self._overflowed:
            with self._lock:
                lost, some = self._take_queued()
                fresh = outbox.record_lost(lost, "not_written_in_time") if lost else []
                fresh += outbox.record(some) if some else []
                for _ in range(0 if self._drafts else min(len(self._confirmed), MOST_AT_ONCE)):
                    self._confirmed.popleft()(outbox)
            self._announce(fresh)
        self._note_health(outbox)

    def _take_queued(self) -> tuple[int, list[Draft]]:
        with self._queue:
            lost, self._overflowed = self._overflowed, 0
            return lost, [self._drafts.popleft() for _ in range(min(len(self._drafts), MOST_AT_ONCE))]

    def _announce(self, entries: list[Entry]) -> None:
        for entry in entries:
            for listener in self._listeners:
                listener(entry.line)
        assert self._outbox is not None
        self._note_health(self._outbox)

    def _note_health(self, outbox: Outbox) -> None:
        with self._lock:
            detail = outbox.trouble or ""
            self._health = StorageHealth(not outbox.degraded, detail, outbox.waiting(), outbox.unsaved)
