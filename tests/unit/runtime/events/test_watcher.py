from __future__ import annotations

from typing import Any

from road_messages import blind, road

from edge_road.road_state import RoadState
from edge_road.runtime.events.event import Severity
from edge_road.runtime.events.watcher import Happening, Seen, watch


def happened(*messages: RoadState) -> list[Happening]:
    seen, found = Seen(model="m"), []
    for message in messages:
        seen, happenings = watch(seen, message, "none")
        found += happenings
    return found


def at(seconds: float) -> dict[str, Any]:
    return {"published_mono_ns": round(seconds * 1e9)}


def kinds(*messages: RoadState) -> list[tuple[str, object]]:
    return [(h.kind, h.details.get("state", h.details.get("fault"))) for h in happened(*messages)]


def test_ice_is_an_alarm_at_once() -> None:
    (event,) = happened(road("icy", 0, **at(1)), road("icy", 1, **at(1.05)))
    assert (event.kind, event.severity, event.details["before"]) == ("state", Severity.ALARM, "unknown")


def test_a_short_unknown_is_no_change_of_state() -> None:
    assert kinds(road("dry", 0, **at(1)), blind("settling", 1, **at(1.1)), road("dry", 2, **at(1.5))) == [
        ("state", "dry")
    ]


def test_an_unknown_that_lasts_is_one() -> None:
    assert kinds(road("dry", 0, **at(1)), blind("settling", 1, **at(2)), blind("settling", 2, **at(3.1))) == [
        ("state", "dry"),
        ("state", "unknown"),
    ]


def test_a_fault_begins_once_and_ends_once_however_it_flaps() -> None:
    flapping = []
    for number in range(40):
        moment = at(1 + number * 0.1)
        flapping.append(blind("exposure", number, **moment) if number % 2 else road("dry", number, **moment))
    after = [road("dry", 100 + n, **at(5 + n * 0.5)) for n in range(4)]
    found = [h for h in happened(*flapping, *after) if h.kind.startswith("fault")]
    assert [h.kind for h in found] == ["fault_begin", "fault_end"]
    assert found[1].details["times"] == 20


def test_a_fault_of_an_instant_is_none() -> None:
    instant = [blind("no_frames", 0, **at(1)), road("dry", 1, **at(1.05)), road("dry", 2, **at(3))]
    assert kinds(*instant) == [("state", "dry")]


def test_what_the_road_or_the_user_does_is_no_fault() -> None:
    for reason in ("starting", "low_confidence", "shutdown", "implausible_temperature"):
        assert kinds(blind(reason, 0, **at(1)), blind(reason, 1, **at(1.5))) == []


def test_another_model_is_told_but_not_the_lack_of_one() -> None:
    models = [road("dry", 0, model_digest=digest, **at(1)) for digest in ("none", "m", "n")]
    assert [h.details["model_digest"] for h in happened(*models) if h.kind == "model"] == ["n"]
