"""How the daemon fares, in one word: it says so when it sees nothing, and when it says nothing."""

from __future__ import annotations

import pytest
from road_messages import blind, road

from edge_road.clock import ScriptedClock
from edge_road.road_state import RoadState
from edge_road.runtime.daemon import awaited
from edge_road.runtime.events.writer import StorageHealth
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle


class Scene:
    def __init__(self) -> None:
        self.clock = ScriptedClock()
        self.status = Status("van", "b", self.clock)

    def say(self, message: RoadState, seconds: float = 0.0) -> None:
        for _ in range(round(2 * seconds) + 1):
            self.status.published(message, message.to_json())
            self.clock.sleep(0.5)

    def told(self, *names: str) -> list[object]:
        health = self.status.health()
        return [health[name] for name in names]


def test_a_daemon_that_has_fallen_silent_says_no_state() -> None:
    scene = Scene()
    assert scene.told("ok", "state", "reasons") == [False, "unknown", ["starting"]]
    scene.say(road("dry", 1))
    assert scene.told("ok", "alive", "state") == [True, True, "dry"]
    scene.clock.sleep(2.5)
    assert scene.told("ok", "alive", "state", "reasons") == [False, False, "unknown", ["stale"]]


@pytest.mark.parametrize("reason", ["no_frames", "worker_died", "obstructed"])
def test_a_vehicle_that_a_fault_blinds_is_not_well(reason: str) -> None:
    scene = Scene()
    scene.say(blind(reason, 1), seconds=4)
    assert scene.told("ok", "blind_s") == [True, 4.0]
    scene.say(blind(reason, 2), seconds=2)
    assert scene.told("ok", "alive", "blind_s") == [False, True, 6.5]
    scene.say(road("dry", 3))
    assert scene.told("ok", "blind_s") == [True, 0.0]


@pytest.mark.parametrize("reason", ["low_confidence", "unfamiliar", "starting"])
def test_a_road_that_cannot_be_told_is_no_fault(reason: str) -> None:
    scene = Scene()
    scene.say(blind(reason, 1), seconds=60)
    assert scene.told("ok", "blind_s") == [True, 0.0]


@pytest.mark.parametrize(("outputs", "waiting"), [([{"kind": "mqtt"}], 41), ([{"path": "-"}], 0), ([], 0)])
def test_events_wait_only_for_somebody_who_fetches_them(outputs: list[object], waiting: int) -> None:
    health = StorageHealth(False, "disk full", 41, 7)
    told = awaited(health, Vehicle.model_validate({"outputs": outputs}))
    assert (told.ok, told.waiting, told.unsaved) == (False, waiting, 7)
