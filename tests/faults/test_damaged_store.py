"""Row 28: whatever happens to the bytes of the event store, it opens again, and what is lost is named."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
from fault_rows import FaultRow

from edge_road.runtime.events.event import GAP, Draft, Severity, parse_event
from edge_road.runtime.events.outbox import Limits, Outbox

EVENTS, ROUNDS = 120, 60
LIMITS = Limits(10**7, 10**6)


def new_draft(kind: str, severity: Severity, details: dict[str, object]) -> Draft:
    return Draft(kind, severity, 1, "2026-01-01T00:00:00.000Z", False, details)


def killed_store(folder: Path) -> Path:
    """The files of a daemon that was killed: half of the events in the database, half in its log."""
    outbox = Outbox(folder / "events.sqlite", "van", "b", LIMITS, new_draft)
    for number in range(EVENTS):
        outbox.record([new_draft("state", Severity.NOTE, {"number": number, "text": "x" * 200})])
        if number == EVENTS // 2:
            assert outbox._store is not None
            outbox._store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = folder / "killed"
    copy.mkdir()
    for path in folder.glob("events.sqlite*"):
        shutil.copy(path, copy)
    outbox.close()
    return copy


def damage(folder: Path, number: int, generator: np.random.Generator) -> None:
    """By turns: changed bytes, a zeroed page, a cut; in the database, or in its log."""
    path = folder / ("events.sqlite-wal" if number % 2 else "events.sqlite")
    content = bytearray(path.read_bytes())
    kind = number // 2 % 3
    if kind == 0:
        for position in generator.integers(0, len(content), 8):
            content[position] ^= int(generator.integers(1, 256))
    elif kind == 1:
        page = 4096 * int(generator.integers(0, len(content) // 4096))
        content[page : page + 4096] = bytes(4096)
    else:
        del content[int(generator.integers(0, len(content))) :]
    path.write_bytes(content)


def accounted_for(folder: Path) -> tuple[int, int]:
    """How many of the numbers are still there, and how many a gap names; together they must be all."""
    outbox = Outbox(folder / "events.sqlite", "van", "c", LIMITS, new_draft)
    assert not outbox.degraded, outbox.trouble
    outbox.record([new_draft("boot", Severity.NOTE, {})])
    entries = outbox.after(0, 10**6) or outbox.after(0, 10**6)  # damage may show only when it is read
    outbox.close()
    events = [parse_event(entry.line) for entry in entries]
    there = {event.seq for event in events if event.boot_id == "b"}
    gaps = [event.draft.details for event in events if event.draft.kind == GAP]
    named = {n for gap in gaps if gap["boot_id"] == "b" for n in range(gap["from"], gap["to"] + 1)}
    assert there | named == set(range(EVENTS)), sorted(set(range(EVENTS)) - there - named)
    assert "boot" in {event.draft.kind for event in events}
    return len(there), len(named - there)


def test_a_damaged_store_opens_again_and_every_lost_event_is_named(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    original, generator = killed_store(tmp_path), np.random.default_rng(28)
    kept = lost = hurt = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        damage(folder, number, generator)
        there, named = accounted_for(folder)
        kept, lost, hurt = kept + there, lost + named, hurt + (named > 0)
        shutil.rmtree(folder)
    assert hurt > 0, "the damage was never felt"
    assert kept > lost
    note = (
        f"{ROUNDS} damaged stores of {EVENTS} events: {kept} events kept, {lost} named in gaps, 0 unexplained"
    )
    fault_row(
        28, "bytes changed, pages zeroed, files cut; database and log", state="-", reason="storage_damaged",
        how="in process", note=note,
    )  # fmt: skip


def test_a_store_of_a_newer_version_is_kept_aside(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "events.sqlite")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    outbox = Outbox(tmp_path / "events.sqlite", "van", "c", LIMITS, new_draft)
    assert not outbox.degraded
    outbox.close()
    assert (tmp_path / "events.sqlite.damaged-1").exists()
