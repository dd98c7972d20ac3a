"""What systemd is told: READY after the first state, WATCHDOG while there is progress, STOPPING."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

from edge_road.clock import Clock

PINGS_PER_LIMIT = 4
"""systemd asks for two; one may come late"""


class Systemd:
    """Silent when no service manager has started us. Never blocks: a full socket loses the note."""

    def __init__(self, machine: Clock, environment: Mapping[str, str] = os.environ) -> None:
        self._machine = machine
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._ping_ns = _ping_ns(environment)
        self._pinged_ns: int | None = None
        self._ready = False

    def progress(self) -> None:
        """The loop has turned and the last message is not overdue; whoever hangs does not get here."""
        now_ns = self._machine.mono_ns()
        if not self._ready:
            self._ready = True
            self._tell("READY=1")
        if self._ping_ns and (self._pinged_ns is None or now_ns - self._pinged_ns >= self._ping_ns):
            self._pinged_ns = now_ns
            self._tell("WATCHDOG=1")

    def reloading(self) -> None:
        self._ready = False  # READY=1 follows with the next progress
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={self._machine.mono_ns() // 1000}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def _tell(self, text: str) -> None:
        if self._address is None:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.sendto(text.encode(), self._address)


def _address(name: str) -> str | None:
    """A path, or a name in the abstract namespace (written with @)."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else None


def _ping_ns(environment: Mapping[str, str]) -> int:
    """Meant for this process only (sd_watchdog_enabled(3)); 0: no watchdog."""
    limit, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not limit.isdigit() or (pid and pid != str(os.getpid())):
        return 0
    return int(limit) * 1000 // PINGS_PER_LIMIT
