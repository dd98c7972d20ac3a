"""The store keeps each event once, forgets the oldest, and never stops the page."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.fleet.fleet import StoredEvent, StoredPoint
from edge_road.fleet.store import FleetStore, StoreWriter
from edge_road.fleet.track import Point


def event(seq: int) -> StoredEvent:
    return StoredEvent("van", "b", seq, "2026-11-16T12:00:00.000Z", "state", "alarm", "{}")


def point(number: int, vehicle: str = "van") -> StoredPoint:
    return StoredPoint(vehicle, "t", Point(47.0 + number, 8.0, "dry"))


def test_what_is_kept_is_there_after_opening_again(tmp_path: Path) -> None:
    store = FleetStore(tmp_path / "deep" / "fleet.sqlite")
    store.add([event(0), event(1), point(0), point(1, "bus"), point(2)])
    store.close()
    again = FleetStore(tmp_path / "deep" / "fleet.sqlite")
    assert again.points() == [point(0), point(1, "bus"), point(2)]
    assert again.points(per_vehicle=1) == [point(1, "bus"), point(2)]
    assert again.count("event") == 2


def test_an_event_that_was_sent_again_after_a_restart_is_one_row(tmp_path: Path) -> None:
    store = FleetStore(tmp_path / "fleet.sqlite")
    store.add([event(0)])
    store.add([event(0), event(1)])
    assert store.count("event") == 2


def test_the_oldest_rows_go_first_and_the_file_stops_growing(tmp_path: Path) -> None:
    store = FleetStore(tmp_path / "fleet.sqlite", most_rows=100)
    sizes = []
    for round_number in range(20):
        store.add([event(50 * round_number + n) for n in range(50)])
        sizes.append(store._connection.execute("PRAGMA page_count").fetchone()[0])
    assert store.count("event") == 100
    rows = store._connection.execute("SELECT min(seq), max(seq) FROM event").fetchone()
    assert rows == (900, 999)
    assert max(sizes[10:]) <= max(sizes[:10]) + 1


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 100])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fleet.sqlite"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be opened"):
        FleetStore(path)
    assert path.read_bytes() == content


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "fleet.sqlite") as other:
        other.execute("PRAGMA user_version = 7")
    with pytest.raises(ConfigError, match="another version"):
        FleetStore(tmp_path / "fleet.sqlite")


def test_a_failing_disk_costs_records_and_is_told(tmp_path: Path) -> None:
    store = FleetStore(tmp_path / "fleet.sqlite")
    store._connection.execute("DROP TABLE event")
    writer = StoreWriter(store)
    writer.keep(event(0))
    writer.start()
    writer.close()
    assert writer.lost == 1
    assert "no such table" in writer.trouble


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    writer = StoreWriter(FleetStore(tmp_path / "fleet.sqlite"))
    writer.start()
    for number in range(10):
        writer.keep(event(number))
    writer.close()
    assert FleetStore(tmp_path / "fleet.sqlite").count("event") == 10
