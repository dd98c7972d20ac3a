"""The number of waiting events is kept, not counted anew, and must stay the true one."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.runtime.events.event import Severity
from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.events.store import Change, Store


def entries(first: int, count: int) -> tuple[Entry, ...]:
    return tuple(Entry(n, "boot", n, Severity.NOTE, f'{{"n": {n}}}') for n in range(first, first + count))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "events.sqlite")


def in_the_file(store: Store) -> int:
    return len(store.after(0, 1000))


def test_events_that_come_and_go_are_counted(store: Store) -> None:
    store.apply(Change(entries(1, 5)))
    store.apply(Change(entries(6, 2), frozenset({1, 2, 3})))
    store.apply(Change(deletes=frozenset({7})))
    assert store.waiting == in_the_file(store) == 3


def test_what_is_applied_twice_counts_once(store: Store) -> None:
    change = Change(entries(1, 4), frozenset({9}))
    store.apply(change)
    store.apply(change)
    assert store.waiting == in_the_file(store) == 4


def test_deleting_what_is_gone_counts_nothing(store: Store) -> None:
    store.apply(Change(entries(1, 2)))
    store.apply(Change(deletes=frozenset({1})))
    store.apply(Change(deletes=frozenset({1})))
    assert store.waiting == in_the_file(store) == 1


def test_a_change_that_fails_counts_nothing(store: Store) -> None:
    store.apply(Change(entries(1, 2)))
    broken = Entry(3, "boot", 3, Severity.NOTE, "\ud800")  # half a character: no text
    with pytest.raises(UnicodeEncodeError):
        store.apply(Change((*entries(4, 2), broken)))
    assert store.waiting == in_the_file(store) == 2


def test_a_start_finds_the_number_in_the_file(tmp_path: Path) -> None:
    first = Store(tmp_path / "events.sqlite")
    first.apply(Change(entries(1, 3)))
    first.close()
    assert Store(tmp_path / "events.sqlite").waiting == 3
