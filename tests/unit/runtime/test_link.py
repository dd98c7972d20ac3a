from __future__ import annotations

import math

import pytest

from edge_road.errors import BundleError, EdgeRoadError
from edge_road.road_state import Position
from edge_road.runtime.evidence import Alive, Ended, Evidence, Failed, RegionEvidence
from edge_road.runtime.link import MOST_AT_ONCE, Setup, SupervisorEnd, WorkerEnd
from edge_road.runtime.spawning import socket_pair
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import VehicleInputs

Ends = tuple[SupervisorEnd, WorkerEnd]


@pytest.fixture
def ends() -> Ends:
    ours, theirs = socket_pair()
    return SupervisorEnd(ours), WorkerEnd(theirs)


def test_the_worker_gets_its_settings(ends: Ends) -> None:
    supervisor, worker = ends
    setup = Setup(vehicle=Vehicle(vehicle="van", rate=12), origin_mono_ns=5)
    supervisor.send_setup(setup)
    assert worker.receive_setup() == setup


def test_records_arrive_whole_and_in_order(ends: Ends) -> None:
    supervisor, worker = ends
    sent = [Evidence(number=n, captured_mono_ns=n) for n in range(3)]
    for evidence in sent:
        worker.send(evidence)
    ended = Ended(dropped=1, rejected=2)
    worker.send(ended)
    assert supervisor.receive() == [*sent, ended]
    assert supervisor.receive() == []


def test_nan_arrives_as_nan(ends: Ends) -> None:
    supervisor, worker = ends
    nan = float("nan")
    region = RegionEvidence(name="road", probabilities=(nan, float("inf"), 0.5))
    worker.send(Evidence(number=1, captured_mono_ns=1, regions=(region,)))
    (received,) = supervisor.receive() or []
    assert isinstance(received, Evidence)
    probabilities = received.regions[0].probabilities
    assert math.isnan(probabilities[0])
    assert probabilities[1:] == (math.inf, 0.5)


def test_an_error_crosses_with_its_text_and_exit_code(ends: Ends) -> None:
    supervisor, worker = ends
    error = BundleError("a bundle file is cut", where="model.onnx", fix="export again")
    worker.send(Failed.because(error))
    (received,) = supervisor.receive() or []
    assert isinstance(received, Failed)
    assert str(received.error()) == str(error)
    assert received.error().exit_code == 3


def test_the_end_of_the_worker_is_seen_after_its_last_words(ends: Ends) -> None:
    supervisor, worker = ends
    worker.send(Alive())
    worker._channel.close()
    assert supervisor.receive() == [Alive()]
    assert supervisor.receive() is None


def test_a_flood_is_taken_in_parts(ends: Ends) -> None:
    supervisor, worker = ends
    for _ in range(MOST_AT_ONCE + 5):
        worker.send(Alive())
    assert len(supervisor.receive() or []) == MOST_AT_ONCE
    assert len(supervisor.receive() or []) == 5


def test_the_worker_knows_what_the_vehicle_said_last(ends: Ends) -> None:
    supervisor, worker = ends
    worker._channel.setblocking(False)
    assert worker.newest_inputs() == VehicleInputs()
    for speed_mps in (3.0, 14.0):
        inputs = VehicleInputs().with_speed(speed_mps, 7).with_ambient(-2.0, 5)
        supervisor.send_inputs(inputs.with_position(Position(latitude=60, longitude=24), 6))
    assert worker.newest_inputs().speed_mps(7) == 14.0
    assert worker.newest_inputs() == inputs.with_position(Position(latitude=60, longitude=24), 6)
    supervisor.close()
    with pytest.raises(ConnectionError):
        worker.newest_inputs()


def test_a_worker_that_does_not_listen_does_not_hold_up_the_supervisor(ends: Ends) -> None:
    supervisor, worker = ends
    for _ in range(500):
        supervisor.send_inputs(VehicleInputs())
    worker._channel.close()
    supervisor.send_inputs(VehicleInputs())


def test_a_supervisor_that_does_not_read_costs_records_and_not_the_worker(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, worker = ends
    monkeypatch.setattr("edge_road.runtime.link.PATIENCE_S", 0.0001)
    worker._channel.setblocking(False)
    for _ in range(500):
        worker.send(Alive())


def test_nonsense_is_refused(ends: Ends) -> None:
    supervisor, worker = ends
    worker._channel.send(b'{"kind": "evidence", "number": "many"}')
    with pytest.raises(EdgeRoadError, match="makes no sense"):
        supervisor.receive()
