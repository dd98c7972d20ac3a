"""The thread that writes events, over a real store."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edge_road.runtime.events import writer as writing
from edge_road.runtime.events.event import Draft, Severity
from edge_road.runtime.events.outbox import Limits, Outbox
from edge_road.runtime.events.store import Store
from edge_road.runtime.events.writer import EventWriter

LIMITS = Limits(disk=10**7, memory=10**6)


def draft(kind: str = "state", severity: Severity = Severity.NOTE, details: object = None) -> Draft:
    return Draft(kind, severity, 1, "2026-01-01T00:00:00.000Z", False)


def broken(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventWriter]:
    monkeypatch.setattr(writing, "FIRST_RETRY_S", 0.2)
    made = EventWriter(
        lambda: Outbox(tmp_path / "events.sqlite", "van", "b1", LIMITS, draft), lambda previous: draft("boot")
    )
    made.start()
    assert made.flush(5)
    yield made
    made.close(5)


def until(condition: Callable[[], bool], meanwhile: Callable[[], object]) -> None:
    for _ in range(200):
        if condition():
            return
        meanwhile()
        threading.Event().wait(0.02)
    raise AssertionError("it never happened")


def test_a_disk_with_room_again_is_used_again_however_many_events_come(
    writer: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(Store, "apply", broken)
        writer.record(draft())
        until(lambda: not writer.health().ok, lambda: None)
    until(lambda: writer.health().ok, lambda: writer.record(draft()))
    assert writer.flush(5)
    assert writer.health().unsaved == 0


def test_a_flush_waits_for_all_that_was_recorded(
    writer: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_AT_ONCE", 1)
    with writer._lock:  # the disk takes its time
        for _ in range(50):
            writer.record(draft())
        stored: list[int] = []
        writer._confirm(lambda outbox: stored.append(outbox.waiting()))
    assert writer.flush(10)
    assert stored == [51]  # and the boot


def test_events_that_come_too_fast_from_several_threads_are_stored_or_counted(
    writer: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_QUEUED", 2)
    stored, lost = list[Draft](), list[int]()
    monkeypatch.setattr(Outbox, "record", lambda outbox, drafts: stored.extend(drafts) or [])
    monkeypatch.setattr(Outbox, "record_lost", lambda outbox, count, reason: lost.append(count) or [])
    threads = [
        threading.Thread(target=lambda: [writer.record(draft()) for _ in range(2000)]) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.flush(10)
    assert len(stored) + sum(lost) == 6000
    assert lost


def test_trouble_that_a_reader_meets_is_mended_without_a_new_event(
    writer: EventWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as unreadable:
        unreadable.setattr(Store, "after", broken)
        assert writer.after(0, 10) == []
    until(lambda: any("fault_end" in entry.line for entry in writer.after(0, 10)), lambda: None)
    assert writer.flush(5)
    assert writer.health().ok
