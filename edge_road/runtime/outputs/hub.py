"""One message to many readers, each with a short queue: a slow one loses its oldest, the rest nothing."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Reader:
    """`wake` is called, in the publisher's thread, when there is something to take."""

    def __init__(self, most: int, wake: Callable[[], None]) -> None:
        self._waiting: deque[str] = deque()
        self._most, self.wake = most, wake
        self._lock = threading.Lock()
        self.lost = 0

    def put(self, item: str) -> None:
        with self._lock:
            if len(self._waiting) >= self._most:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(item)

    def take(self) -> list[str]:
        with self._lock:
            items = list(self._waiting)
            self._waiting.clear()
            return items


class Hub:
    """Bounded in readers and in what each may let wait."""

    def __init__(self, most_readers: int, most_waiting: int) -> None:
        self.most_readers, self._most_waiting = most_readers, most_waiting
        self._readers: tuple[Reader, ...] = ()
        self._lock = threading.Lock()
        self._lost_before = 0

    def join(self, wake: Callable[[], None]) -> Reader | None:
        """None when the house is full."""
        with self._lock:
            if len(self._readers) >= self.most_readers:
                return None
            reader = Reader(self._most_waiting, wake)
            self._readers = (*self._readers, reader)
            return reader

    def leave(self, reader: Reader) -> None:
        with self._lock:
            self._readers = tuple(other for other in self._readers if other is not reader)
            self._lost_before += reader.lost

    def publish(self, item: str) -> None:
        for reader in self._readers:
            reader.put(item)
            reader.wake()

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def lost(self) -> int:
        return self._lost_before + sum(reader.lost for reader in self._readers)
