"""Events in one SQLite file: committed means it survives a kill and a power cut.

WAL with synchronous=FULL, because NORMAL may roll back what was committed before a power cut.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from edge_road.runtime.events.event import Severity
from edge_road.runtime.events.eviction import Entry

VERSION = 1
QUARANTINED = 3
"""damaged files to keep for whoever wants to look at them"""

_SCHEMA = """
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  boot_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  severity INTEGER NOT NULL,
  line TEXT NOT NULL,
  crc INTEGER NOT NULL,
  UNIQUE (boot_id, seq)
) STRICT;
CREATE INDEX event_by_severity ON event (severity, id);
CREATE TABLE boot (boot_id TEXT PRIMARY KEY, number INTEGER NOT NULL, last_seq INTEGER NOT NULL) STRICT;
"""
_COLUMNS = "id, boot_id, seq, severity, line, crc"
_Row = tuple[int, str, int, int, str, int]
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Change:
    """What one transaction does; doing it twice is the same as doing it once."""

    inserts: tuple[Entry, ...] = ()
    deletes: frozenset[int] = field(default_factory=frozenset)


class Store:
    """Errors are sqlite3's own: an OperationalError may pass, another DatabaseError means damage."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=1.0, cached_statements=32
        )
        self._connection.text_factory = _text
        try:
            self._prepare()
            # Counted once, then kept: with a million events waiting, a count takes milliseconds.
            self.held_bytes: int = self._one("SELECT coalesce(sum(length(line)), 0) FROM event")
            self.waiting: int = self._one("SELECT count(*) FROM event")
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        run = self._connection.execute
        # Exclusive: no shared-memory file, which on a full disk could end the process with SIGBUS.
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "cache_size=-512"):
            run(f"PRAGMA {pragma}")
        run("PRAGMA wal_autocheckpoint=256")
        run(f"PRAGMA journal_size_limit={2**20}")
        if self._one("PRAGMA quick_check(1)") != "ok":
            raise sqlite3.DatabaseError("the database fails its check")
        version = self._one("PRAGMA user_version")
        if version > VERSION:
            raise sqlite3.DatabaseError(f"the database is of a newer version: {version}")
        if version == 0:
            self._within_transaction(self._create)

    def _create(self) -> None:
        for statement in _SCHEMA.split(";\n"):
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA user_version={VERSION}")

    def apply(self, change: Change) -> None:
        """All of it or nothing; when this returns, it is on the disk."""
        freed: list[int] = []
        inserted = self._within_transaction(lambda: self._apply(change, freed))
        self.held_bytes += sum(entry.size for entry in change.inserts) - sum(freed)
        self.waiting += inserted - len(freed)

    def _apply(self, change: Change, freed: list[int]) -> int:
        """The number of new rows: what is there already is not inserted again."""
        delete = "DELETE FROM event WHERE id = ? RETURNING length(line)"
        for number in sorted(change.deletes):
            freed += [size for (size,) in self._connection.execute(delete, (number,)).fetchall()]
        run = self._connection.executemany
        insert = f"INSERT OR IGNORE INTO event ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        inserted = run(insert, map(_row, change.inserts)).rowcount
        run(
            "INSERT INTO boot SELECT ?, coalesce(max(number), 0) + 1, ? FROM boot WHERE true"
            " ON CONFLICT DO UPDATE SET last_seq = max(last_seq, excluded.last_seq)",
            [(entry.boot_id, entry.seq) for entry in change.inserts],
        )
        # Only the newest boots matter; the table must not grow for ever.
        self._connection.execute("DELETE FROM boot WHERE number <= (SELECT max(number) - 16 FROM boot)")
        return max(0, inserted)

    def after(self, entry_id: int, limit: int) -> list[Entry]:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM event WHERE id > ? ORDER BY id LIMIT ?", (entry_id, limit)
        )
        return [_entry(row) for row in rows.fetchall()]

    def evictable(self, excess: int) -> list[Entry]:
        """In the order in which they may go: enough to free `excess` bytes, then the gap records."""
        chosen: list[Entry] = []
        for severity in Severity:
            chosen += self._of_severity(severity, excess - sum(entry.size for entry in chosen))
        return chosen

    def _of_severity(self, severity: Severity, excess: float) -> list[Entry]:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM event WHERE severity = ? ORDER BY id", (severity,)
        )
        chosen: list[Entry] = []
        while (severity == Severity.GAP or excess > 0) and (row := rows.fetchone()) is not None:
            chosen.append(_entry(row))
            excess -= chosen[-1].size
        rows.close()
        return chosen

    def ids_up_to(self, boot_id: str, seq: int, entry_id: int) -> set[int]:
        rows = self._connection.execute(
            "SELECT id FROM event WHERE boot_id = ? AND seq <= ? AND id <= ?", (boot_id, seq, entry_id)
        )
        return {number for (number,) in rows}

    @property
    def last_id(self) -> int:
        return int(self._one("SELECT coalesce(max(id), 0) FROM event"))

    def boots(self) -> dict[str, int]:
        """The highest number that each boot gave to an event; the newest boot first."""
        return dict(self._connection.execute("SELECT boot_id, last_seq FROM boot ORDER BY number DESC"))

    def close(self) -> None:
        self._connection.close()

    def _within_transaction(self, work: Callable[[], _Result]) -> _Result:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._connection.execute("COMMIT")
            return result
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]


@dataclass(frozen=True)
class Rescued:
    """What could still be read of a damaged file."""

    entries: list[Entry]
    """in order"""
    boots: dict[str, int]
    """the highest number that each boot gave to an event, the oldest boot first; empty when unreadable"""
    from_the_front: bool
    """the first event that was waiting is among them"""


def rescue(path: Path) -> Rescued:
    """From both ends, because reading may stop in the middle."""
    try:
        connection = sqlite3.connect(path, timeout=1.0)
    except sqlite3.Error:
        return Rescued([], {}, False)
    connection.text_factory = _text
    try:
        forward = list(_readable(connection, "ASC"))
        backward = _readable(connection, "DESC")
        found = {entry.id: entry for entry in (*forward, *backward) if entry is not None}
        boots = _boots(connection)
    finally:
        connection.close()
    return Rescued([found[number] for number in sorted(found)], boots, None not in forward[:1])


def quarantine(path: Path) -> Path:
    """Move a damaged database aside with its log; only the newest few are kept."""
    aside = [path.with_name(f"{path.name}.damaged-{number}") for number in range(1, QUARANTINED + 1)]
    for older, newer in zip(reversed(aside), reversed(aside[:-1])):
        _move(newer, older)
    _move(path, aside[0])
    return aside[0]


def _move(source: Path, target: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        old, new = Path(f"{source}{suffix}"), Path(f"{target}{suffix}")
        new.unlink(missing_ok=True)
        if old.exists():
            os.replace(old, new)


def _readable(connection: sqlite3.Connection, direction: str) -> Iterator[Entry | None]:
    """None stands for a row that is damaged, and for the place at which reading ends too early."""
    try:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM event ORDER BY id {direction}")
        while (row := rows.fetchone()) is not None:
            try:
                yield _entry(row)
            except (sqlite3.DatabaseError, TypeError, AttributeError):
                yield None
    except sqlite3.Error:
        yield None


def _boots(connection: sqlite3.Connection) -> dict[str, int]:
    try:
        rows = connection.execute("SELECT boot_id, last_seq FROM boot ORDER BY number").fetchall()
    except sqlite3.Error:
        return {}
    return {boot: seq for boot, seq in rows if isinstance(boot, str) and isinstance(seq, int)}


def _text(content: bytes) -> str:
    """Damaged text is read like any other: its checksum tells, where a decoding error would stop us."""
    return content.decode(errors="replace")


def _row(entry: Entry) -> _Row:
    return (entry.id, entry.boot_id, entry.seq, entry.severity, entry.line, _crc(entry))


def _entry(row: _Row) -> Entry:
    entry = Entry(*row[:5])
    if _crc(entry) != row[5]:
        raise sqlite3.DatabaseError("a row is damaged")
    return entry


def _crc(entry: Entry) -> int:
    text = f"{entry.id} {entry.boot_id} {entry.seq} {entry.severity} {entry.line}"
    return zlib.crc32(text.encode())
