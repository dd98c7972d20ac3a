"""The fleet believes what the client believes: whole, new, fresh; and only of the vehicle of the topic."""

from __future__ import annotations

from typing import Any

import pytest
from road_messages import blind, changed, road

from edge_road.clock import ScriptedClock
from edge_road.fleet import fleet as fleet_module
from edge_road.fleet.fleet import Fleet, Record, StoredEvent, StoredPoint
from edge_road.fleet.track import Point
from edge_road.runtime.events.event import Draft, Event, Severity

PLACE = {"latitude": 47.0, "longitude": 8.0, "accuracy_m": None}


class Kept(Fleet):
    def __init__(self) -> None:
        self.clock, self.records = ScriptedClock(), list[Record]()
        super().__init__("edge_road", self.clock, self.records.append)

    def say(self, message: Any, name: str = "van") -> None:
        self.take(f"edge_road/{name}/state", message.to_json().encode())

    def state(self, name: str = "van") -> tuple[str, list[str]]:
        row = next(row for row in self.rows() if row["vehicle"] == name)
        return row["state"], row["reasons"]


def event(seq: int, vehicle: str = "van", **details: Any) -> bytes:
    draft = Draft("state", Severity.ALARM, 1, "2026-11-16T12:00:00.000Z", True, details)
    return Event(vehicle, "b", seq, draft).to_json().encode()


def test_a_state_holds_while_it_is_fresh_and_then_is_unknown() -> None:
    fleet = Kept()
    fleet.say(road("icy", 1))
    assert fleet.state() == ("icy", [])
    fleet.clock.sleep(1.5)
    assert fleet.state() == ("unknown", ["stale"])


def test_a_vehicle_that_signed_off_still_says_why() -> None:
    """The broker says it with the number that the vehicle had when it connected."""
    fleet = Kept()
    for seq in range(1, 4):
        fleet.say(road("dry", seq))
    fleet.say(blind("offline", 1))
    assert fleet.state() == ("unknown", ["offline"])
    fleet.clock.sleep(60)
    assert fleet.state() == ("unknown", ["stale", "offline"])


def test_a_repeated_message_does_not_make_an_old_state_young() -> None:
    fleet = Kept()
    fleet.say(road("dry", 5))
    fleet.clock.sleep(0.9)
    fleet.say(road("dry", 5))
    fleet.clock.sleep(0.9)
    assert fleet.state() == ("unknown", ["stale"])
    assert fleet.rows()[0]["refused"] == 1


def test_damage_changes_nothing_and_is_counted() -> None:
    fleet = Kept()
    fleet.say(road("dry", 1))
    fleet.take("edge_road/van/state", road("icy", 2).to_json().replace("icy", "wet").encode())
    fleet.take("edge_road/van/state", b"\xff{")
    assert fleet.state() == ("dry", [])
    assert fleet.rows()[0]["refused"] == 2


def test_a_vehicle_cannot_speak_for_another() -> None:
    fleet = Kept()
    fleet.say(road("dry", 1), "truck")
    fleet.take("edge_road/truck/events", event(1))
    assert fleet.rows() == []
    assert fleet.refused == 2


@pytest.mark.parametrize("name", ["", "-van", "a b", "a\x00", "van\n", "x" * 65, "van/../bus"])
def test_odd_names_make_nobody_known(name: str) -> None:
    fleet = Kept()
    fleet.say(road("dry", 1, vehicle=name), name)
    assert fleet.rows() == []


def test_positions_become_a_track_with_the_state_at_each_point() -> None:
    fleet = Kept()
    for number, state in enumerate(("dry", "dry", "icy")):
        place = {**PLACE, "latitude": 47.0 + 0.001 * number}
        fleet.say(road(state, number, position=place, speed_mps=13.9))
    points = fleet.tracks()["van"]
    assert [point.state for point in points] == ["dry", "dry", "icy"]
    assert [record.point for record in fleet.records if isinstance(record, StoredPoint)] == points
    assert (fleet.rows()[0]["position"], fleet.rows()[0]["speed_mps"]) == ([47.002, 8.0], 13.9)


def test_the_vehicle_is_where_it_is_now_however_coarse_its_track() -> None:
    fleet = Kept()
    for number in range(3):
        fleet.say(road("dry", number, position={**PLACE, "latitude": 47.0 + 1e-5 * number}))
    assert len(fleet.tracks()["van"]) == 1
    assert fleet.rows()[0]["position"] == [47.00002, 8.0]


def test_an_event_that_comes_twice_is_kept_once_and_shown_newest_first() -> None:
    fleet = Kept()
    for seq in (0, 1, 1, 0):
        fleet.take("edge_road/van/events", event(seq, state="icy"))
    assert [kept.seq for kept in fleet.records if isinstance(kept, StoredEvent)] == [0, 1]
    shown = fleet.events("van")
    assert shown is not None
    assert [(one["seq"], one["text"]) for one in shown] == [(1, "icy"), (0, "icy")]


def test_hostile_events_are_refused() -> None:
    fleet = Kept()
    changes: tuple[dict[str, Any], ...] = (
        {"seq": -1},
        {"seq": 10**30},
        {"severity": "x" * 99},
        {"utc": None},
        {"details": []},
    )
    for change in changes:
        fleet.take("edge_road/van/events", changed(event(1), **change))
    assert fleet.rows() == []
    assert fleet.refused == 5


def test_text_that_no_file_can_hold_reaches_neither_page_nor_store() -> None:
    fleet, half_a_pair = Kept(), "\ud800"
    fleet.take("edge_road/van/events", changed(event(1), boot_id=half_a_pair))
    fleet.take("edge_road/van/state", changed(road("dry", 1).to_json().encode(), version=half_a_pair))
    assert (fleet.rows(), fleet.records, fleet.refused) == ([], [], 2)


def test_when_all_places_are_taken_only_the_long_silent_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_module, "MOST_VEHICLES", 2)
    fleet = Kept()
    for name in ("a", "b", "c"):
        fleet.say(road("dry", 1, vehicle=name), name)
        fleet.clock.sleep(10)
    assert [row["vehicle"] for row in fleet.rows()] == ["a", "b"]
    fleet.clock.sleep(fleet_module.FORGOTTEN_S)
    fleet.say(road("dry", 2, vehicle="b"), "b")
    fleet.say(road("wet", 1, vehicle="c"), "c")
    assert [row["vehicle"] for row in fleet.rows()] == ["b", "c"]


def test_restored_tracks_say_where_but_not_what_the_road_is_now() -> None:
    fleet = Kept()
    fleet.restore([StoredPoint("van", "t", Point(47.0, 8.0, "icy"))])
    assert fleet.state() == ("unknown", ["no_message"])
    assert fleet.rows()[0]["position"] == [47.0, 8.0]


def test_topics_that_are_not_ours_are_ignored() -> None:
    fleet = Kept()
    fleet.take("edge_road/van/ack", b"{}")
    fleet.take("other", b"{}")
    assert (fleet.rows(), fleet.refused) == ([], 0)
