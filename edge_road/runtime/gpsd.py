"""A satellite receiver through gpsd: position and speed from its JSON reports, asked for again for ever."""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Callable

from pydantic import Field

from edge_road.config import StrictModel

log = logging.getLogger(__name__)

WATCH = b'?WATCH={"enable":true,"json":true};\n'
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
LOOK_S = 0.5
"""how often a silent connection looks whether it is to end"""
LONGEST_LINE = 16 * 1024
"""gpsd's own limit is 10 kB; reports of many satellites come close"""
REPORT = b'{"class":"TPV"'
"""time, position, velocity: the class stands first, and nothing else is of use here"""


class GpsdSettings(StrictModel):
    """A satellite receiver, through gpsd."""

    host: str = Field(default="127.0.0.1", pattern=r"^[A-Za-z0-9_.:-]{1,253}$")
    """of gpsd"""
    port: int = Field(default=2947, ge=1, le=65535)
    """of gpsd"""
    connect_s: float = Field(default=2.0, gt=0, le=60)
    """longest wait for a connection"""
    silent_s: float = Field(default=10.0, ge=1, le=600)
    """a receiver reports every second; after this long the connection is made anew"""


class Gpsd:
    """One thread; gpsd that is away, silent, or speaks nonsense costs nothing but the position."""

    def __init__(self, settings: GpsdSettings, take: Callable[[bytes], None]) -> None:
        self._settings, self._take = settings, take
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpsd", daemon=True)
        self.connected = False

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s, said = 0.0, ""
        while not self._stopping.wait(pause_s * random.uniform(0.75, 1.25)):
            try:
                self._listen()
                trouble = "gpsd closed the connection"
            except (OSError, UnicodeError) as error:  # the latter: not the name of any host (IDNA)
                trouble = str(error)
            if self._stopping.is_set():
                return
            pause_s = (
                FIRST_PAUSE_S if self.connected else min(max(FIRST_PAUSE_S, 2 * pause_s), LONGEST_PAUSE_S)
            )
            self.connected = False
            if trouble != said:  # the same trouble is told once
                log.warning("no position from gpsd: %s", trouble)
            said = trouble

    def _listen(self) -> None:
        settings = self._settings
        with socket.create_connection((settings.host, settings.port), timeout=settings.connect_s) as channel:
            channel.sendall(WATCH)
            channel.settimeout(LOOK_S)
            self._read(channel)

    def _read(self, channel: socket.socket) -> None:
        waiting, silent_s = b"", 0.0
        while not self._stopping.is_set():
            try:
                content = channel.recv(LONGEST_LINE)
            except TimeoutError:
                silent_s += LOOK_S
                if silent_s >= self._settings.silent_s:
                    raise ConnectionAbortedError(f"nothing was said for {silent_s:g} s") from None
                continue
            if not content:
                return
            silent_s = 0.0
            waiting = self._take_lines(waiting + content)

    def _take_lines(self, content: bytes) -> bytes:
        """Whole lines are taken; what is left begins the next one."""
        *lines, rest = content.split(b"\n")
        for line in filter(None, map(bytes.strip, lines)):
            if not self.connected:
                self.connected = True
                log.info("gpsd at %s:%d answers", self._settings.host, self._settings.port)
            if line.startswith(REPORT):
                self._take(line)
        if len(rest) > LONGEST_LINE:
            raise ConnectionAbortedError("a line has no end")
        return rest
