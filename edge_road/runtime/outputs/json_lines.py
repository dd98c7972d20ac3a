"""JSON lines in a file that is rotated, or on the standard output."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import threading
from collections import deque
from pathlib import Path

from edge_road.errors import ConfigError
from edge_road.road_state import RoadState
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.vehicle_outputs import JsonLinesOutput

log = logging.getLogger(__name__)

MOST_WAITING = 1000
STANDARD_OUTPUT = "-"
READABLE = 0o644


class Taken(ConfigError):
    """Somebody else writes to the file."""


class JsonLines:
    """A thread writes the lines; when it cannot keep up, the oldest waiting ones are lost."""

    def __init__(self, settings: JsonLinesOutput, mode: int = READABLE) -> None:
        self._settings, self._mode = settings, mode
        self._descriptor = _open_or_refuse(settings.path, mode)
        self._size = os.fstat(self._descriptor).st_size
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._torn = self._failing = False
        self.gone = False
        self.lost = 0
        self._thread = threading.Thread(target=self._run, name="json-lines", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """It writes from the first line on."""

    def publish(self, message: RoadState, line: str) -> None:
        self.write(line)

    def publish_event(self, line: str) -> None:
        if self._settings.events:
            self.write(line)

    def write(self, line: str) -> None:
        with self._changed:
            if len(self._waiting) == MOST_WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(line)
            self._changed.notify()

    def health(self) -> OutputHealth:
        name = f"json_lines {self._settings.path}"
        return OutputHealth(name, not (self._failing or self.gone), lost=self.lost)

    def close(self, timeout_s: float) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)
        if self._thread.is_alive():  # a slow disk must not keep whoever is next from the file
            with contextlib.suppress(OSError):  # it has ended by now
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _run(self) -> None:
        while (line := self._next()) is not None and not self.gone:
            try:
                self._begin_anew_if_full_or_gone()
                self._write(line)
                self._report_failing(None)
            except OSError as error:
                self.lost += 1
                self._report_failing(error)
                # A pipe at a path may find its next reader; the standard output's was the only one.
                self.gone = isinstance(error, BrokenPipeError) and self._settings.path == STANDARD_OUTPUT
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
            self._size += written

    def _begin_anew_if_full_or_gone(self) -> None:
        """A file that somebody has moved or removed is nobody's any more: the next line begins a new one."""
        limit = self._settings.rotate_mb * 2**20
        if self._settings.path == STANDARD_OUTPUT:
            return
        if _is_at(self._settings.path, self._descriptor):
            if not limit or self._size < limit:
                return
            self._rotate()
        fresh = _open(self._settings.path, self._mode)
        os.close(self._descriptor)
        self._descriptor, self._size, self._torn = fresh, os.fstat(fresh).st_size, False

    def _rotate(self) -> None:
        """PATH becomes PATH.1, PATH.1 becomes PATH.2, and the oldest makes room."""
        names = [self._settings.path, *(f"{self._settings.path}.{n + 1}" for n in range(self._settings.keep))]
        for older, newer in zip(reversed(names), reversed(names[:-1])):
            if os.path.exists(newer):
                os.replace(newer, older)

    def _report_failing(self, error: OSError | None) -> None:
        if self._failing == (error is not None):
            return
        self._failing = error is not None
        if error is not None:
            log.error("messages to %s are being lost: %s", self._settings.path, _why(error))
        else:
            log.warning("messages to %s are written again; %d were lost", self._settings.path, self.lost)


def _is_at(path: str, descriptor: int) -> bool:
    """Whether the path still leads to the open file or pipe; a pipe that is away may come back."""
    opened = os.fstat(descriptor)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return not stat.S_ISREG(opened.st_mode)
    both_are_pipes = stat.S_ISFIFO(opened.st_mode) and stat.S_ISFIFO(found.st_mode)
    can_be_moved = both_are_pipes or stat.S_ISREG(opened.st_mode)
    return not can_be_moved or os.path.samestat(found, opened)


def _open(path: str, mode: int) -> int:
    if path == STANDARD_OUTPUT:
        return os.dup(1)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    # Without waiting: to open a pipe that nobody reads would hold up the first heartbeat.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags, mode)
    os.set_blocking(descriptor, True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def check_path(path: str) -> str:
    """What a daemon would find. Nothing is made: a file of whoever checks might be closed to the daemon."""
    if path == STANDARD_OUTPUT or os.path.exists(path):
        os.close(_open_or_refuse(path))
        return f"{path}: can be written"
    folder = next(folder for folder in Path(path).absolute().parents if folder.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        got = f"nothing can be made in {folder}"
        raise ConfigError("the file for messages cannot be made", where=path, got=got)
    return f"{path}: can be made"


def _open_or_refuse(path: str, mode: int = READABLE) -> int:
    try:
        return _open(path, mode)
    except BlockingIOError:
        raise Taken("another process writes to this file", where=path) from None
    except OSError as error:
        raise ConfigError("the file for messages cannot be opened", where=path, got=_why(error)) from None


def _why(error: OSError) -> str | None:
    return "a pipe that nobody reads" if error.errno in (errno.ENXIO, errno.EPIPE) else error.strerror
