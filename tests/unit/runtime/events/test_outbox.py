"""The contract of the outbox: what is recorded is delivered in order, or a gap record names it."""

from __future__ import annotations

import errno
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge_road.runtime.events.event import GAP, Draft, Severity, parse_event
from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.events.outbox import Limits, Outbox
from edge_road.runtime.events.store import Store

ROOMY = Limits(disk=10**7, memory=10**6)


def draft(
    kind: str = "state", severity: Severity = Severity.NOTE, details: dict[str, object] | None = None
) -> Draft:
    return Draft(kind, severity, 1, "2026-01-01T00:00:00.000Z", False, details or {})


def outbox_at(folder: Path, boot: str = "b1", limits: Limits = ROOMY) -> Outbox:
    return Outbox(folder / "events.sqlite", "van", boot, limits, lambda k, s, d: draft(k, s, d))


def after_a_kill(folder: Path) -> Path:
    """The files as they are at this moment, in a folder of their own: nobody has closed them."""
    copy = folder / "after"
    copy.mkdir()
    for path in folder.glob("events*"):
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def seqs(entries: list[Entry], boot: str = "b1") -> list[int]:
    return [entry.seq for entry in entries if entry.boot_id == boot]


def gaps(entries: list[Entry]) -> list[dict[str, object]]:
    events = [parse_event(entry.line).draft for entry in entries]
    return [dict(event.details) for event in events if event.kind == GAP]


def everything(outbox: Outbox) -> list[Entry]:
    return outbox.after(0, 100_000)


@contextmanager
def no_room_for_files(most_bytes: int = 0) -> Iterator[None]:
    """Every write beyond `most_bytes` of a file fails, as on a full disk."""
    import signal

    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def fails(*_: object, **__: object) -> None:
    raise sqlite3.OperationalError("unable to open database file")


def test_events_wait_in_order_until_they_are_delivered(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft() for _ in range(5)])
    first = outbox.after(0, 2)
    assert seqs(first) == [0, 1]
    assert seqs(outbox.after(first[-1].id, 10)) == [2, 3, 4]
    outbox.delivered(entry.id for entry in first)
    assert seqs(everything(outbox)) == [2, 3, 4]


def test_events_survive_the_end_of_the_process_and_numbers_begin_anew(tmp_path: Path) -> None:
    first = outbox_at(tmp_path)
    first.record([draft(), draft()])
    second = outbox_at(after_a_kill(tmp_path), "b2")
    second.record([draft()])
    assert [(entry.boot_id, entry.seq) for entry in everything(second)] == [("b1", 0), ("b1", 1), ("b2", 0)]
    assert second.previous == {"boot_id": "b1", "last_seq": 1}


def test_the_backend_acknowledges_up_to_a_number_but_never_what_was_not_sent(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path)
    entries = outbox.record([draft() for _ in range(6)])
    outbox.delivered_up_to("another", 5, entries[-1].id)
    outbox.delivered_up_to("b1", 10**9, entries[3].id)
    assert seqs(everything(outbox)) == [4, 5]


def test_when_room_is_short_the_least_severe_go_first_and_leave_one_gap(tmp_path: Path) -> None:
    size = len(outbox_at(tmp_path / "probe").record([draft()])[0].line)
    outbox = outbox_at(tmp_path, limits=Limits(disk=20 * size, memory=10**6))
    outbox.record([draft(severity=Severity.ALARM if n % 4 == 0 else Severity.NOTE) for n in range(20)])
    outbox.record([draft() for _ in range(3)])
    held = everything(outbox)
    (gap,) = gaps(held)
    assert gap["reason"] == "no_room"
    assert gap["from"] == 1
    kept = set(seqs(held))
    assert {0, 4, 8, 12, 16} <= kept
    missing = set(range(max(kept))) - kept
    assert gap["count"] == len(missing)
    assert all(gap["from"] <= number <= gap["to"] for number in missing)


def test_thousands_of_events_stay_within_the_bound_and_every_loss_is_named(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path, limits=Limits(disk=40_000, memory=10**6))
    for _ in range(60):
        outbox.record([draft() for _ in range(50)])
    held = everything(outbox)
    assert sum(entry.size for entry in held if entry.severity < Severity.GAP) <= 40_000
    last = max(seqs(held))
    assert len(held) + sum(int(str(gap["count"])) for gap in gaps(held)) == last + 1


def test_a_full_disk_keeps_events_in_memory_and_loses_none(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft(), draft()])
    with no_room_for_files():
        told = outbox.record([draft(), draft()])
        assert outbox.degraded
        assert seqs(told) == [2, 3, 4]
        assert {parse_event(entry.line).draft.kind for entry in told} == {"state", "fault_begin"}
        assert seqs(everything(outbox)) == [0, 1, 2, 3, 4]
        outbox.delivered([everything(outbox)[0].id])
        assert outbox.recover() == []
        assert outbox.degraded
    (ended,) = outbox.recover()
    assert parse_event(ended.line).draft.kind == "fault_end"
    assert not outbox.degraded
    assert seqs(everything(outbox)) == [1, 2, 3, 4, 5]
    outbox.close()
    assert seqs(everything(outbox_at(tmp_path, "b2"))) == [1, 2, 3, 4, 5]


def test_memory_is_bounded_while_the_disk_is_full(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path, limits=Limits(disk=10**7, memory=5_000))
    with no_room_for_files():
        for _ in range(200):
            outbox.record([draft()])
        assert outbox.unsaved < 60
    outbox.recover()
    held = everything(outbox)
    assert len(held) + sum(int(str(gap["count"])) for gap in gaps(held)) == max(seqs(held)) + 1


def test_a_kill_while_the_disk_is_full_leaves_a_gap_record_at_the_next_start(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft(), draft()])
    with no_room_for_files(most_bytes=2048):
        outbox.record([draft() for _ in range(5)])
        assert outbox.degraded
    folder = after_a_kill(tmp_path)
    second = outbox_at(folder, "b2")
    (gap,) = gaps(everything(second))
    assert gap == {"boot_id": "b1", "from": 2, "to": 7, "count": 6, "reason": "storage"}
    second.close()
    assert len(gaps(everything(outbox_at(folder, "b3")))) == 1


def test_a_start_on_a_broken_disk_works_in_memory(tmp_path: Path) -> None:
    (tmp_path / "events.sqlite").mkdir()
    outbox = outbox_at(tmp_path)
    outbox.record([draft()])
    assert outbox.degraded
    assert seqs(everything(outbox)) == [0, 1]
    (tmp_path / "events.sqlite").rmdir()
    outbox.recover()
    assert not outbox.degraded
    assert seqs(everything(outbox)) == [0, 1, 2]


def test_a_file_that_is_no_database_is_moved_aside(tmp_path: Path) -> None:
    (tmp_path / "events.sqlite").write_bytes(b"no database at all" * 500)
    outbox = outbox_at(tmp_path)
    outbox.record([draft()])
    assert not outbox.degraded
    kinds = [parse_event(entry.line).draft.kind for entry in everything(outbox)]
    assert kinds == ["fault_begin", "state"]
    assert (tmp_path / "events.sqlite.damaged-1").exists()


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8, 0.99])
def test_a_damaged_page_costs_its_events_and_names_them(tmp_path: Path, at: float) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft(details={"text": "x" * 400}) for _ in range(400)])
    outbox.close()
    path = tmp_path / "events.sqlite"
    content = bytearray(path.read_bytes())
    page = int(at * len(content) / 4096) * 4096
    content[page : page + 4096] = bytes(4096)
    path.write_bytes(content)
    held = everything(outbox_at(tmp_path, "b2"))
    kept = set(seqs(held))
    named: set[int] = set()
    for gap in gaps(held):
        named |= set(range(int(str(gap["from"])), int(str(gap["to"])) + 1))
    assert kept | named == set(range(400))


def test_a_log_that_was_cut_is_noticed(tmp_path: Path) -> None:
    """SQLite takes a shortened log for one that ended earlier; the marker knows better."""
    outbox = outbox_at(tmp_path)
    for _ in range(10):
        outbox.record([draft()])
    copy = after_a_kill(tmp_path)
    wal = copy / "events.sqlite-wal"
    wal.write_bytes(wal.read_bytes()[: wal.stat().st_size // 2])
    held = everything(outbox_at(copy, "b2"))
    kept = seqs(held)
    (gap,) = gaps(held)
    assert 0 < len(kept) < 10
    assert (gap["from"], gap["to"]) == (kept[-1] + 1, 9)


def test_an_error_of_one_transaction_is_not_the_end_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft()])
    real = Store.apply

    def broken(self: Store, change: object) -> None:
        raise sqlite3.OperationalError(f"disk I/O error ({errno.EIO})")

    monkeypatch.setattr(Store, "apply", broken)
    outbox.record([draft()])
    monkeypatch.setattr(Store, "apply", real)
    outbox.recover()
    assert seqs(everything(outbox)) == [0, 1, 2, 3]


def test_events_that_were_never_written_in_time_are_named(tmp_path: Path) -> None:
    outbox = outbox_at(tmp_path)
    outbox.record([draft()])
    outbox.record_lost(3, "not_written_in_time")
    held = everything(outbox)
    assert seqs(held) == [0, 4]
    assert gaps(held) == [{"boot_id": "b1", "from": 1, "to": 3, "count": 3, "reason": "not_written_in_time"}]


def test_a_disk_that_comes_back_after_the_start_keeps_the_backlog_and_the_new_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outbox_at(tmp_path)
    before.record([draft() for _ in range(5)])
    before.close()
    with monkeypatch.context() as broken:
        broken.setattr(sqlite3, "connect", fails)
        outbox = outbox_at(tmp_path, "b2")
        outbox.record([draft() for _ in range(3)])
    outbox.recover()
    held = everything(outbox)
    assert seqs(held) == [0, 1, 2, 3, 4]
    assert seqs(held, "b2") == [0, 1, 2, 3, 4]  # three, and that the disk was broken, and is no more


def test_what_was_rescued_from_a_damaged_file_survives_a_disk_that_takes_no_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = outbox_at(tmp_path)
    before.record([draft(details={"text": "x" * 400}) for _ in range(100)])
    before.close()
    path = tmp_path / "events.sqlite"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = bytes(4096)
    path.write_bytes(content)
    with monkeypatch.context() as broken:
        broken.setattr(Store, "_create", fails)
        outbox = outbox_at(tmp_path, "b2")
        assert outbox.degraded
    outbox.recover()
    held = everything(outbox)
    named = {n for gap in gaps(held) for n in range(int(str(gap["from"])), int(str(gap["to"])) + 1)}
    assert set(seqs(held)) | named == set(range(100))
    assert 0 < len(named) < 50
