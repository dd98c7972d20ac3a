"""What a page that is opened late has missed."""

from __future__ import annotations

import json

import pytest
from road_messages import blind, road

from edge_road.clock import ScriptedClock
from edge_road.runtime.outputs import web_past
from edge_road.runtime.outputs.web_past import MOST_EVENTS, MOST_PICTURES, SPAN_S, Album, History


def test_the_history_tells_how_long_ago_each_state_was() -> None:
    clock = ScriptedClock()
    history = History(clock)
    history.add(road("dry", 1))
    clock.sleep(2)
    history.add(blind("dark", 2))
    clock.sleep(1)
    assert history.samples() == [(3.0, "dry", [0.9, 0.1, 0.0]), (1.0, "unknown", None)]


def test_a_steady_state_is_kept_once_a_second_and_a_change_at_once() -> None:
    clock = ScriptedClock()
    history = History(clock)
    for number in range(30):  # three seconds at ten messages a second
        history.add(road("dry" if number < 25 else "icy", number))
        clock.sleep(0.1)
    assert [state for _, state, _ in history.samples()] == ["dry", "dry", "dry", "icy"]


def test_the_history_forgets_and_stays_small_however_wild_the_states_are() -> None:
    clock = ScriptedClock()
    history = History(clock)
    for number in range(4 * round(SPAN_S)):
        history.add(road(("dry", "icy")[number % 2], number))
        clock.sleep(0.3)
    samples = history.samples()
    assert max(ago_s for ago_s, _, _ in samples) <= SPAN_S
    assert len(history._samples) <= 4 * SPAN_S
    assert len(json.dumps(samples)) < 120_000


def event(kind: str = "state", **details: object) -> str:
    return json.dumps({"utc": "2026-01-01T00:00:00.000Z", "kind": kind, "details": details})


def test_an_event_keeps_what_the_camera_saw() -> None:
    album = Album(lambda: b"jpeg")
    told = album.keep(event(state="icy", reasons=["settling"]))
    assert (told["state"], told["reasons"], told["at"]) == ("icy", ["settling"], "2026-01-01T00:00:00.000Z")
    assert album.picture(told["picture"]) == b"jpeg"
    assert album.events() == [told]


@pytest.mark.parametrize("kind", ["boot", "config", "shutdown", "model"])
def test_what_the_camera_has_no_part_in_has_no_picture(kind: str) -> None:
    assert "picture" not in Album(lambda: b"jpeg").keep(event(kind))


def test_where_pictures_are_off_there_are_none() -> None:
    album = Album(lambda: None)
    album.keep(event(state="dry"))
    assert album.events()[0]["picture"] is None
    assert album.picture(1) is None


def test_the_album_is_bounded_in_events_and_pictures() -> None:
    album = Album(lambda: b"jpeg")
    for _ in range(3 * MOST_EVENTS):
        album.keep(event(state="dry"))
    assert len(album.events()) == MOST_EVENTS
    named = [told["picture"] for told in album.events() if told["picture"]]
    assert len(named) == MOST_PICTURES
    assert all(album.picture(number) == b"jpeg" for number in named)
    assert album.picture(1) is None


def test_the_album_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_past, "MOST_PICTURE_BYTES", 25)
    album = Album(lambda: b"0123456789")
    numbers = [album.keep(event(state="dry"))["picture"] for _ in range(3)]
    assert [album.picture(number) is not None for number in numbers] == [False, True, True]
