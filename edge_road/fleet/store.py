"""What the fleet said, in one SQLite file with a cap: the oldest rows go first."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from pathlib import Path

from edge_road.errors import ConfigError
from edge_road.fleet.fleet import Record, StoredEvent, StoredPoint
from edge_road.fleet.track import Point

log = logging.getLogger(__name__)

VERSION = 1
MOST_ROWS = 500_000
MOST_WAITING = 20_000
EVERY_S = 1.0
CACHE_KB = 256
_SCHEMA = """
CREATE TABLE event (
  id INTEGER PRIMARY KEY,
  vehicle TEXT NOT NULL, boot_id TEXT NOT NULL, seq INTEGER NOT NULL,
  utc TEXT NOT NULL, kind TEXT NOT NULL, severity TEXT NOT NULL, line TEXT NOT NULL,
  UNIQUE (vehicle, boot_id, seq)
);
CREATE TABLE point (
  id INTEGER PRIMARY KEY,
  vehicle TEXT NOT NULL, utc TEXT NOT NULL,
  latitude REAL NOT NULL, longitude REAL NOT NULL, state TEXT NOT NULL
);
CREATE INDEX point_by_vehicle ON point (vehicle, id);
"""
_INSERT = {
    StoredEvent: "INSERT OR IGNORE INTO event (vehicle, boot_id, seq, utc, kind, severity, line) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)",
    StoredPoint: "INSERT INTO point (vehicle, utc, latitude, longitude, state) VALUES (?, ?, ?, ?, ?)",
}


class FleetStore:
    """The tables; used by one thread at a time."""

    def __init__(self, path: Path, most_rows: int = MOST_ROWS) -> None:
        if most_rows < 1:
            raise ConfigError("a store needs room", got=most_rows, expected="one row or more")
        self._most_rows = most_rows
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=5.0
            )
            self._prepare(path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError("the fleet's store cannot be opened", where=path, got=error) from None

    def _prepare(self, path: Path) -> None:
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise ConfigError("the store is of another version", where=path, got=version, expected=VERSION)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA cache_size = -{CACHE_KB}")
        if version == 0:
            self._connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")

    def add(self, records: list[Record]) -> None:
        """All of them or none."""
        self._connection.execute("BEGIN")
        try:
            for record in records:
                self._connection.execute(_INSERT[type(record)], _values(record))
            for table in ("event", "point"):  # ids rise by one, so the newest one tells how many there are
                self._connection.execute(
                    f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?", (self._most_rows,)
                )
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def points(self, per_vehicle: int = 256) -> list[StoredPoint]:
        """The newest of each vehicle, the oldest first."""
        rows = self._connection.execute(
            "SELECT vehicle, utc, latitude, longitude, state FROM (SELECT *, row_number() OVER "
            "(PARTITION BY vehicle ORDER BY id DESC) AS place FROM point) WHERE place <= ? ORDER BY id",
            (per_vehicle,),
        )
        return [StoredPoint(row[0], row[1], Point(row[2], row[3], row[4])) for row in rows]

    def count(self, table: str) -> int:
        assert table in ("event", "point")
        return int(self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def close(self) -> None:
        self._connection.close()


def _values(record: Record) -> tuple[object, ...]:
    if isinstance(record, StoredEvent):
        names = ("vehicle", "boot_id", "seq", "utc", "kind", "severity", "line")
        return tuple(getattr(record, name) for name in names)
    point = record.point
    return (record.vehicle, record.utc, point.latitude, point.longitude, point.state)


class StoreWriter:
    """Writes once a second in its own thread; a disk that fails costs records, never the page."""

    def __init__(self, store: FleetStore) -> None:
        self._store = store
        self._waiting: queue.Queue[Record] = queue.Queue(MOST_WAITING)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self.lost = 0
        self.trouble = ""

    def start(self) -> None:
        self._thread.start()

    def keep(self, record: Record) -> None:
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self.lost += 1

    def close(self) -> None:
        self._closing.set()
        self._thread.join(10)
        self._store.close()

    def _run(self) -> None:
        while not self._closing.wait(EVERY_S):
            self._write()
        self._write()

    def _write(self) -> None:
        records = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        if not records:
            return
        try:
            self._store.add(records)
            self.trouble = ""
        except sqlite3.Error as error:
            self.lost += len(records)
            if not self.trouble:
                log.warning("the fleet's store fails: %s", error)
            self.trouble = str(error) or type(error).__name__
