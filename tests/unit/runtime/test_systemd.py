from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_road.clock import ScriptedClock
from edge_road.config import load_settings
from edge_road.export.engine_command import _parser as engine_parser
from edge_road.runtime.systemd import Systemd
from edge_road.runtime.vehicle import Vehicle


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


UNITS = ("edge-road.service", "edge-road-engine.service")
HARDENED = re.compile(
    r"(NoNew|Protect|Private|Restrict|Lock|Capability|SystemCallArch)\w+=|(User|StateDirectory|UMask)="
)


def unit(root: Path, name: str) -> list[str]:
    lines = (root / "runtime" / "systemd" / name).read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_understands_every_line(root: Path, tmp_path: Path, name: str) -> None:
    text = (root / "runtime" / "systemd" / name).read_text()
    (tmp_path / name).write_text(text.replace("/opt/edge_road/venv/bin/edge-road", "/bin/true"))
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_engines_are_built_beside_the_daemon_and_never_before_it(root: Path) -> None:
    daemon, engine = (unit(root, name) for name in UNITS)
    assert not any("edge-road-engine" in line for line in daemon)
    assert not any(line.startswith(("Before=", "Type=oneshot", "Conflicts=")) for line in engine)
    assert {"Nice=19", "OOMScoreAdjust=900"} <= set(engine)


def test_engines_are_built_as_carefully_as_the_daemon_runs(root: Path) -> None:
    daemon, engine = ({line for line in unit(root, name) if HARDENED.match(line)} for name in UNITS)
    network = {"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_CAN"}
    assert daemon - engine == network
    assert engine - daemon == {"RestrictAddressFamilies=AF_UNIX", "PrivateNetwork=yes"}
    listed = ("DevicePolicy=", "DeviceAllow=", "PrivateDevices=", "ProtectClock=")
    assert not any(line.startswith(listed) for line in unit(root, UNITS[1])), (
        "a GPU's devices have no one name"
    )


def test_engines_are_built_of_bundles_that_a_shipped_vehicle_would_run(root: Path) -> None:
    (command,) = (line.split()[1:] for line in unit(root, UNITS[1]) if line.startswith("ExecStart="))
    assert command[:2] == ["engine", "build"]
    options = engine_parser().parse_args(command[1:])
    vehicle = load_settings(Vehicle, root / "runtime/vehicles/jetson_csi.toml")
    assert tuple(options.trusted_key) == vehicle.trust.trusted_keys


def test_the_service_never_gives_up(root: Path) -> None:
    """An address that comes up late at boot looks like a wrong setting (exit code 2)."""
    lines = (root / "runtime" / "systemd" / "edge-road.service").read_text().splitlines()
    assert {"Restart=on-failure", "StartLimitIntervalSec=0"} <= set(lines)
    assert not any(line.startswith("RestartPreventExitStatus") for line in lines)
