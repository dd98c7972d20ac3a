"""Rows 24 to 27 of the fault matrix on a whole daemon: watchdog, signals, storage."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from daemon_harness import Daemon, pattern_vehicle, retried_on_a_busy_machine

from edge_road.runtime.events.event import Event, parse_event


def events_of(path: Path) -> list[Event]:
    """What the store holds after the daemon has ended."""
    connection = sqlite3.connect(path)
    try:
        return [parse_event(line) for (line,) in connection.execute("SELECT line FROM event ORDER BY id")]
    finally:
        connection.close()


def until(condition: Callable[[], Any], timeout_s: float = 20.0) -> float:
    """When it became true."""
    ends_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends_s, "it never happened"
        time.sleep(0.01)
    return time.monotonic()


class Manager:
    """systemd's end of the notify socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.notes: list[str] = []

    def read(self) -> list[str]:
        while True:
            try:
                self.notes.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.notes

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    path = tmp_path / "notify"
    found = Manager(path)
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    monkeypatch.setenv("WATCHDOG_USEC", "2000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    yield found
    found.close()


@retried_on_a_busy_machine
def test_a_stuck_supervisor_no_longer_pings_systemd(tmp_path: Path, manager: Manager, fault_row) -> None:  # type: ignore[no-untyped-def]
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for(lambda message: True)
        until(lambda: manager.read().count("WATCHDOG=1") >= 3)
        assert manager.notes[0] == "READY=1"
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        before = len(manager.read())
        time.sleep(1.5)
        assert len(manager.read()) == before
        daemon.process.send_signal(signal.SIGCONT)
        resumed_s = time.monotonic()
        back_s = until(lambda: len(manager.read()) > before) - resumed_s
        assert daemon.stop() == 0
    assert "STOPPING=1" in manager.read()
    fault_row(24, "supervisor stuck", state="-", how="SIGSTOP", recover_s=back_s, note="no ping while stuck")


@retried_on_a_busy_machine
def test_a_supervisor_whose_loop_hangs_does_not_ping_though_its_threads_live(
    tmp_path: Path, manager: Manager, fault_row: Callable[..., None]
) -> None:
    fault = {"EDGE_ROAD_FAULT": "supervisor.hang@2-6"}
    with Daemon(tmp_path, vehicle=pattern_vehicle(), environment=fault) as daemon:
        daemon.wait_for_state("dry")
        until(lambda: time.monotonic() - daemon.received[-1][0] > 1.0)
        before = len(manager.read())
        assert manager.notes[0] == "READY=1"
        time.sleep(1.5)
        assert len(manager.read()) == before
        assert daemon.process.poll() is None
        until(lambda: len(manager.read()) > before)
        assert daemon.stop() == 0
    fault_row(
        24,
        "supervisor's loop hangs",
        state="-",
        how="an injected fault; its threads go on",
        note="no ping for 1.5 s, in a watchdog time of 2 s",
    )


@retried_on_a_busy_machine
def test_new_settings_are_taken_and_bad_ones_are_not(tmp_path: Path, fault_row) -> None:  # type: ignore[no-untyped-def]
    store = tmp_path / "events.sqlite"
    vehicle = pattern_vehicle(events={"path": str(store)})
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        _, first = daemon.wait_for(lambda message: True)
        rewrite(tmp_path, {**vehicle, "heartbeat_hz": 4.0})
        daemon.process.send_signal(signal.SIGHUP)
        _, changed = daemon.wait_for(lambda m: m.config_digest != first.config_digest)
        assert changed.valid_for_ms == 500
        for wrong in ({**vehicle, "hartbeat_hz": 4.0}, {**vehicle, "vehicle": "another"}):
            rewrite(tmp_path, wrong)
            seen = daemon.stderr.count("are refused")
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda seen=seen: daemon.stderr.count("are refused") > seen)  # type: ignore[misc]
        assert daemon.messages[-1].config_digest == changed.config_digest
        began_s = time.monotonic()
        assert daemon.stop() == 0
        ended_s = time.monotonic() - began_s
    verdicts = [e.draft.details["accepted"] for e in events_of(store) if e.draft.kind == "config"]
    assert verdicts == [True, False, False]
    assert daemon.messages[-1].reasons == ("shutdown",)
    fault_row(
        25,
        "SIGTERM; SIGHUP with good and bad settings",
        reason="shutdown",
        detect_s=ended_s,
        detect_limit_s=3.0,
        how="signals",
        note="bad settings change nothing",
    )


def rewrite(folder: Path, vehicle: dict[str, Any]) -> None:
    (folder / "vehicle.toml").write_text(tomli_w.dumps(vehicle))


def test_a_killed_daemon_leaves_its_events_to_the_next_one(tmp_path: Path) -> None:
    store = tmp_path / "events.sqlite"
    vehicle = pattern_vehicle(events={"path": str(store)})
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        boot = daemon.wait_for(lambda message: True)[1].boot_id
        until(lambda: boot in dump(store))
        daemon.process.kill()
        daemon.finish()
    with Daemon(tmp_path, vehicle=vehicle) as after:
        next_boot = after.wait_for(lambda message: True)[1].boot_id
        until(lambda: next_boot in dump(store))
        assert after.stop() == 0
    events = events_of(store)
    assert (events[0].boot_id, events[0].draft.kind) == (boot, "boot")
    starts = [event for event in events if event.draft.kind == "boot"]
    assert starts[1].draft.details["previous"]["boot_id"] == boot
    for one in {event.boot_id for event in events}:
        seqs = [event.seq for event in events if event.boot_id == one]
        assert seqs == list(range(len(seqs)))


def dump(store: Path) -> str:
    """The raw files: the daemon holds the lock, so nobody else may open the database."""
    wal = Path(f"{store}-wal")
    return (wal.read_bytes() if wal.exists() else b"").decode("latin-1")


@retried_on_a_busy_machine
def test_storage_that_fails_costs_no_state_and_comes_back_by_itself(tmp_path: Path, fault_row) -> None:  # type: ignore[no-untyped-def]
    blocked = tmp_path / "store"
    blocked.write_text("a file where a folder should be")
    store = blocked / "events.sqlite"
    with Daemon(tmp_path, vehicle=pattern_vehicle(events={"path": str(store)})) as daemon:
        daemon.wait_for(lambda message: True)
        until(lambda: "kept in memory" in daemon.stderr)
        newest = daemon.messages[-1].seq
        daemon.wait_for(lambda message: message.seq > newest + 1)
        blocked.unlink()
        freed_s = time.monotonic()
        back_s = until(lambda: "stored again" in daemon.stderr, timeout_s=30) - freed_s
        assert daemon.stop() == 0
    events = events_of(store)
    assert [event.seq for event in events] == list(range(len(events)))
    faults = [(e.draft.kind, e.draft.details["fault"]) for e in events if "fault" in e.draft.details]
    assert ("fault_begin", "storage_degraded") in faults
    assert ("fault_end", "storage_degraded") in faults
    fault_row(
        27,
        "event store cannot be written",
        state="unchanged",
        reason="storage_degraded",
        how="a file in place of the folder",
        recover_s=back_s,
        recover_limit_s=15.0,
        note="0 events lost",
    )


def descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def test_many_reloads_leave_no_descriptor_behind(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")  # by then everything is open
        before = descriptors(daemon)
        for number in range(20):
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda number=number: daemon.stderr.count("read again") > number)  # type: ignore[misc]
        until(lambda: descriptors(daemon) <= before + 2)
        assert daemon.stop() == 0
