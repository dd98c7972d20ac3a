from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime.systemd import Systemd


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.setblocking(False)
        yield channel


def told(manager: socket.socket) -> list[str]:
    notes = []
    while True:
        try:
            notes.append(manager.recv(4096).decode())
        except BlockingIOError:
            return notes


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "4000000", **more}


def test_ready_is_told_once_and_pings_keep_a_quarter_of_the_limit(manager: socket.socket) -> None:
    clock = ScriptedClock()
    systemd = Systemd(clock, environment(manager))
    assert told(manager) == []
    for _ in range(40):
        systemd.progress()
        clock.sleep(0.1)
    notes = told(manager)
    assert notes[0] == "READY=1"
    assert notes.count("WATCHDOG=1") == 4


def test_without_progress_there_is_no_ping(manager: socket.socket) -> None:
    clock = ScriptedClock()
    systemd = Systemd(clock, environment(manager))
    systemd.progress()
    told(manager)
    clock.sleep(60)
    assert told(manager) == []


def test_a_watchdog_for_another_process_is_not_ours(manager: socket.socket) -> None:
    systemd = Systemd(ScriptedClock(), environment(manager, WATCHDOG_PID=str(os.getpid() + 1)))
    systemd.progress()
    assert told(manager) == ["READY=1"]


def test_a_reload_is_told_and_ready_follows(manager: socket.socket) -> None:
    systemd = Systemd(ScriptedClock(), environment(manager))
    systemd.progress()
    systemd.reloading()
    systemd.progress()
    systemd.stopping()
    notes = told(manager)
    assert notes[2].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert notes[3:] == ["READY=1", "STOPPING=1"]


@pytest.mark.parametrize("name", ["", "relative", "/nowhere/at/all"])
def test_without_a_manager_nothing_happens(name: str) -> None:
    systemd = Systemd(ScriptedClock(), {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "nonsense"})
    systemd.progress()
    systemd.stopping()


def test_the_service_may_open_what_the_daemon_opens(root: Path) -> None:
    """A camera for reading and writing (V4L2 has no other way), and sockets of every output."""
    lines = (root / "runtime" / "systemd" / "edge-road.service").read_text().splitlines()
    assert "DeviceAllow=char-video4linux rw" in lines
    assert "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_CAN" in lines


def test_the_service_never_gives_up(root: Path) -> None:
    """An address that comes up late at boot looks like a wrong setting (exit code 2)."""
    lines = (root / "runtime" / "systemd" / "edge-road.service").read_text().splitlines()
    assert {"Restart=on-failure", "StartLimitIntervalSec=0"} <= set(lines)
    assert not any(line.startswith("RestartPreventExitStatus") for line in lines)
