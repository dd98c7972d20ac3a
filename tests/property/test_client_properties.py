"""Whatever the wire does, a consumer never believes a state that was not said, or no longer holds."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from road_messages import blind, changed, road

from edge_road import client
from edge_road.client import EventReader, StateReader
from edge_road.clock import SystemClock
from edge_road.runtime.events.event import GAP, Draft, Event, Severity
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.vehicle import Vehicle

LINES = [(road if n % 3 else blind)("icy" if n % 3 else "no_frames", n).to_json() for n in range(12)]


class Watch:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def event(seq: int, boot: str = "b") -> Event:
    return Event("van", boot, seq, Draft("state", Severity.NOTE, 1, "t", False, {}))


def gap(seq: int, first: int, last: int, boot: str = "b") -> Event:
    details = {"boot_id": boot, "from": first, "to": last, "count": last - first + 1, "reason": "no_room"}
    return Event("van", boot, seq, Draft(GAP, Severity.GAP, 1, "t", False, details))


def test_the_client_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(client.__file__).read_text())
    roots = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    roots |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert roots <= set(sys.stdlib_module_names)


def test_a_state_holds_until_its_time_is_over() -> None:
    watch = Watch()
    reader = StateReader(watch)
    assert reader.current().reasons == ("no_message",)
    assert reader.take(road("icy", 1).to_json())
    watch.now_s = 0.999
    assert reader.current().state == "icy"
    watch.now_s = 1.001
    assert (reader.current().state, reader.current().reasons) == ("unknown", ("stale",))


@given(st.data())
def test_a_damaged_line_is_never_believed(data: st.DataObject) -> None:
    line = bytearray(road("dry", 3).to_json().encode())
    for _ in range(data.draw(st.integers(1, 3))):
        line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    reader = StateReader()
    if bytes(line) != road("dry", 3).to_json().encode():
        assert not reader.take(bytes(line))
        assert reader.current().state == "unknown"


@pytest.mark.parametrize("change", [{"boot_id": "\ud800"}, {"version": "\udfff"}, {"more": [{"\ud83d": 1}]}])
def test_text_that_no_file_can_hold_is_damaged(change: dict[str, Any]) -> None:
    assert not StateReader().take(changed(road("dry", 1).to_json(), **change))
    assert EventReader().take(changed(event(0).to_json(), **change)) is None


def test_text_that_needs_a_pair_of_surrogates_is_whole() -> None:
    assert StateReader().take(changed(road("dry", 1).to_json(), version="\U0001f600"))


@pytest.mark.parametrize("valid_for_ms", [client.LONGEST_VALID_MS + 1, 10**30, 1e300])
def test_a_state_that_claims_to_last_for_long_is_damaged(valid_for_ms: float) -> None:
    reader = StateReader()
    assert not reader.take(changed(road("dry", 1).to_json(), valid_for_ms=valid_for_ms))
    assert (reader.damaged, reader.current().state) == (1, "unknown")


def test_every_heartbeat_that_may_be_set_is_believed() -> None:
    for heartbeat_hz in (1, 20):
        vehicle = Vehicle(vehicle="van", heartbeat_hz=heartbeat_hz)
        assert StateReader().take(Publisher(vehicle, SystemClock()).offline())


@given(
    st.binary(max_size=300)
    | st.text(max_size=300)
    | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_nonsense_makes_nobody_raise(line: str | bytes) -> None:
    assert not StateReader().take(line)
    assert EventReader().take(line) is None


def test_deep_nesting_is_refused() -> None:
    assert not StateReader().take("[" * 60_000)


@given(st.lists(st.tuples(st.integers(0, 11), st.floats(0, 0.6)), max_size=40))
@settings(max_examples=80)
def test_repeated_and_late_messages_never_extend_a_state(steps: list[tuple[int, float]]) -> None:
    """Only a number above all before counts, and it counts from when it came."""
    watch = Watch()
    reader = StateReader(watch)
    newest, came_s = -1, 0.0
    for number, pause_s in steps:
        watch.now_s += pause_s
        assert reader.take(LINES[number]) == (number > newest)
        if number > newest:
            newest, came_s = number, watch.now_s
        fresh = watch.now_s - came_s <= 1.0
        said = json.loads(LINES[newest])["state"]
        assert reader.current().state == (said if fresh else "unknown")


def test_a_new_start_counts_anew_and_the_old_one_is_not_heard_again() -> None:
    reader = StateReader(Watch())
    assert reader.take(road("dry", 500).to_json())
    assert reader.take(road("icy", 0, boot_id="c").to_json())
    assert not reader.take(road("dry", 501).to_json())
    assert reader.current().state == "icy"


def test_the_last_will_is_heard_whatever_its_number_and_brings_no_old_state_back() -> None:
    """It is as old as the connection that was lost."""
    reader = StateReader(Watch())
    for line in (road("icy", 5), road("dry", 6), blind("offline", 3)):
        assert reader.take(line.to_json())
    assert reader.current().reasons == ("offline",)
    assert not reader.take(road("icy", 5).to_json())
    assert not reader.take(blind("no_frames", 4).to_json())
    assert not reader.take(changed(road("dry", 4).to_json(), reasons=["offline"]))
    assert reader.take(road("wet", 7).to_json())
    assert reader.skipped == 0
    assert reader.take(road("wet", 0, boot_id="c").to_json())
    assert not reader.take(blind("offline", 9).to_json())
    assert reader.current().state == "wet"


@given(st.lists(st.integers(0, 30), max_size=60), st.permutations(range(20)))
def test_every_event_comes_out_once_and_what_is_missing_is_named(
    repeats: list[int], order: list[int]
) -> None:
    reader = EventReader()
    sent = [*order, *(n for n in repeats if n < 20)]
    came = [e["seq"] for n in sent if (e := reader.take(event(n).to_json()))]
    assert came == order
    assert reader.missing == {}
    assert reader.up_to("b") == 19


@given(st.sets(st.integers(0, 29), min_size=1), st.integers(0, 29), st.integers(0, 10))
def test_a_hole_counts_as_missing_unless_a_gap_declares_it(
    present: set[int], first: int, length: int
) -> None:
    reader = EventReader()
    for number in sorted(present):
        reader.take(event(number).to_json())
    reader.take(gap(30, first, first + length).to_json())
    expected = [n for n in range(30) if n not in present and not first <= n <= first + length]
    assert reader.missing.get("b", []) == expected
    assert reader.up_to("b") == (expected[0] - 1 if expected else 30)


def test_one_absurd_number_does_not_hold_up_the_reader() -> None:
    reader = EventReader()
    for seq in (0, 1, 2, 2**60):
        assert reader.take(event(seq).to_json()) is not None
    assert reader.up_to("b") == 2
    assert reader.missing["b"][:3] == [3, 4, 5]
    reader.take(gap(3, 4, 2**60 - 1).to_json())
    assert reader.up_to("b") == 2**60
    assert reader.missing == {}


def test_a_reader_holds_stretches_and_not_every_number_of_every_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MOST_STARTS", 3)
    reader = EventReader()
    for boot in "abcd":
        for seq in range(100, 200):
            reader.take(event(seq, boot).to_json())
    assert [list(start.seen) for start in reader._starts.values()] == [[(100, 199)]] * 3
    assert list(reader.missing) == list("bcd")
    assert reader.take(event(150, "b").to_json()) is None
    assert reader.take(event(150, "a").to_json()) is not None, "it was forgotten"


@given(
    st.lists(st.integers(0, 30), max_size=40),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=4),
)
def test_what_is_missing_is_what_a_slow_count_says(seqs: list[int], gaps: list[tuple[int, int]]) -> None:
    reader, told = EventReader(), set()
    for seq in seqs:
        reader.take(event(seq).to_json())
        told.add(seq)
        holes = [n for n in range(max(told)) if n not in told]
        assert reader.missing.get("b", []) == holes
        assert reader.up_to("b") == (holes[0] if holes else max(told) + 1) - 1
    for number, (first, length) in enumerate(gaps):
        reader.take(gap(100 + number, first, first + length).to_json())
        lost = {n for a, size in gaps[: number + 1] for n in range(a, a + size + 1)}
        told.add(100 + number)
        assert reader.missing.get("b", []) == [n for n in range(max(told)) if n not in told | lost]
