"""How the supervisor starts, watches and replaces its worker, with plain processes in its place."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime import child
from edge_road.runtime.child import Worker
from edge_road.runtime.evidence import Alive, Failed, Ready
from edge_road.runtime.link import AnyReport, WorkerEnd
from edge_road.runtime.spawning import EarlyWorker, socket_pair
from edge_road.runtime.vehicle import Vehicle, WorkerLimits

READY = Ready(
    predictor="p",
    model_digest="m",
    confidence_threshold=0.6,
    source="s",
    period_s=0.1,
    origin_mono_ns=7,
)
Says = Callable[..., None]


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock(mono_ns=10**9)


@pytest.fixture
def worker(clock: ScriptedClock) -> Iterator[Worker]:
    limits = WorkerLimits(stall_s=2.0, ready_s=30.0, longest_pause_s=1.0)
    worker = Worker(Vehicle(worker=limits), clock)
    yield worker
    worker.stop()


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Says:
    """A worker that sleeps, and whose words the test puts into its mouth."""
    mouth: list[int] = []

    def spawn(descriptor: int) -> subprocess.Popen[bytes]:
        mouth.append(os.dup(descriptor))
        return subprocess.Popen(["sleep", "60"])

    def say(*reports: AnyReport | bytes) -> None:
        for report in reports:
            content = report if isinstance(report, bytes) else report.model_dump_json().encode()
            os.write(mouth[-1], content)

    monkeypatch.setattr(child, "_spawn", spawn)
    return say


def test_it_is_started_once(worker: Worker, says: Says) -> None:
    assert worker.start_if_due()
    assert not worker.start_if_due()
    assert worker.receive() == []
    says(READY, Alive())
    assert worker.receive() == [READY, Alive()]


def test_silence_after_ready_is_shorter_than_the_time_to_load(
    worker: Worker, says: Says, clock: ScriptedClock
) -> None:
    worker.start_if_due()
    clock.sleep(29)
    assert not worker.end_if_stalled()
    says(READY)
    worker.receive()
    clock.sleep(1.9)
    assert not worker.end_if_stalled()
    clock.sleep(0.2)
    assert worker.end_if_stalled()
    assert not worker.running


def test_a_worker_that_never_gets_ready_is_ended(worker: Worker, says: Says, clock: ScriptedClock) -> None:
    worker.start_if_due()
    clock.sleep(30.1)
    assert worker.end_if_stalled()


def test_pauses_grow_to_their_limit_and_a_long_life_earns_a_short_one(
    worker: Worker, says: Says, clock: ScriptedClock
) -> None:
    def pause_after_a_life_of(seconds: float) -> float:
        assert worker.start_if_due()
        clock.sleep(seconds)
        says(b"nonsense")
        assert worker.receive() is None
        before_ns = clock.mono_ns()
        while not worker.start_if_due():
            clock.sleep(0.01)
        pause_s = (clock.mono_ns() - before_ns) / 1e9
        worker.stop()
        worker._restart_ns = 0
        return pause_s

    pauses = [pause_after_a_life_of(1.0) for _ in range(5)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.0, 1.0], rel=0.3)
    assert pause_after_a_life_of(31.0) == pytest.approx(0.2, rel=0.3)


def test_a_machine_that_has_no_process_to_spare_is_asked_again(
    worker: Worker, clock: ScriptedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int) -> subprocess.Popen[bytes]:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(child, "_spawn", refuse)
    assert not worker.start_if_due()
    assert not worker.running
    assert not worker.start_if_due()
    clock.sleep(1.0)
    monkeypatch.setattr(child, "_spawn", lambda descriptor: subprocess.Popen(["sleep", "60"]))
    assert worker.start_if_due()


def test_last_words_are_kept_until_the_next_start(worker: Worker, says: Says, clock: ScriptedClock) -> None:
    worker.start_if_due()
    failed = Failed(what="no camera", details={}, exit_code=5)
    says(failed)
    assert worker.receive() == [failed]
    assert worker.failed == failed
    says(b"nonsense")
    assert worker.receive() is None
    assert worker.receive() == []
    clock.sleep(1.0)
    worker.start_if_due()
    assert worker.failed is None


def waiting_worker() -> tuple[EarlyWorker, socket.socket]:
    ours, theirs = socket_pair()
    return EarlyWorker(subprocess.Popen(["sleep", "60"]), ours), theirs


def test_a_worker_that_waits_already_gets_the_settings(clock: ScriptedClock) -> None:
    early, theirs = waiting_worker()
    vehicle = Vehicle(vehicle="van")
    worker = Worker(vehicle, clock, early=early)
    assert worker.start_if_due()
    assert WorkerEnd(theirs).receive_setup().vehicle == vehicle
    theirs.setblocking(True)
    theirs.send(READY.model_dump_json().encode())
    assert worker.receive() == [READY]
    worker.stop()
    assert early.process.returncode == -signal.SIGKILL


def test_a_waiting_worker_that_has_died_is_replaced_at_once(clock: ScriptedClock, says: Says) -> None:
    early, theirs = waiting_worker()
    theirs.close()
    worker = Worker(Vehicle(), clock, early=early)
    assert worker.start_if_due()
    assert early.process.returncode == -signal.SIGKILL
    says(READY)
    assert worker.receive() == [READY]
    worker.stop()


def test_only_the_first_start_finds_a_worker_waiting(clock: ScriptedClock, says: Says) -> None:
    early, theirs = waiting_worker()
    worker = Worker(Vehicle(), clock, early=early)
    assert worker.start_if_due()
    theirs.close()
    assert worker.receive() is None
    clock.sleep(1.0)
    assert worker.start_if_due()
    says(READY)
    assert worker.receive() == [READY]
    assert worker.starts == 2
    worker.stop()
