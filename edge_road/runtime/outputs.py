"""Where messages go. A slow reader, a full disk or a closed pipe never holds up the publisher."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections import deque
from pathlib import Path
from typing import Protocol

from edge_road.errors import ConfigError
from edge_road.runtime.vehicle import JsonLinesOutput

log = logging.getLogger(__name__)

MOST_WAITING = 1000
STANDARD_OUTPUT = "-"


class Output(Protocol):
    @property
    def gone(self) -> bool:
        """Nobody can ever read what is written here again."""
        ...

    def publish(self, line: str) -> None:
        """Returns at once."""
        ...

    def close(self, timeout_s: float) -> None: ...


class JsonLines:
    """A thread writes the lines to a file or the standard output; the oldest waiting lines are lost."""

    def __init__(self, settings: JsonLinesOutput) -> None:
        self._name = settings.path
        self._descriptor = _open(settings.path)
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._torn = self._failing = False
        self.gone = False
        self.lost = 0
        self._thread = threading.Thread(target=self._run, name="json-lines", daemon=True)
        self._thread.start()

    def publish(self, line: str) -> None:
        with self._changed:
            if len(self._waiting) == MOST_WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(line)
            self._changed.notify()

    def close(self, timeout_s: float) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (line := self._next()) is not None and not self.gone:
            try:
                self._write(line)
                self._report_failing(None)
            except BrokenPipeError:
                self.gone = True
            except OSError as error:
                self.lost += 1
                self._report_failing(error)
        os.close(self._descriptor)

    def _next(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting.popleft() if self._waiting else None

    def _write(self, line: str) -> None:
        """Straight to the descriptor; after a torn line the next one begins on a line of its own."""
        rest = ("\n" if self._torn else "").encode() + line.encode() + b"\n"
        while rest:
            written = os.write(self._descriptor, rest)
            rest = rest[written:]
            self._torn = bool(rest)

    def _report_failing(self, error: OSError | None) -> None:
        if self._failing == (error is not None):
            return
        self._failing = error is not None
        if error is not None:
            log.error("messages to %s are being lost: %s", self._name, error.strerror)
        else:
            log.warning("messages to %s are written again; %d were lost", self._name, self.lost)


def _open(path: str) -> int:
    if path == STANDARD_OUTPUT:
        return os.dup(1)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError("another process writes to this file", where=path) from None
    except OSError as error:
        raise ConfigError("the file for messages cannot be opened", where=path, got=error.strerror) from None
    return descriptor
