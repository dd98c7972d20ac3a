"""Events wait here until they are delivered; when the disk fails they wait in memory, and no loss is silent.

Every change is planned first and then applied in one transaction. What the disk does not take stays
in memory as the same plan, so applying it later, or twice, gives the same result.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_road.clock import SystemClock
from edge_road.runtime.events.event import GAP, Draft, Event, Severity
from edge_road.runtime.events.eviction import (
    Entry,
    Gap,
    bytes_to_evict,
    choose,
    eviction_order,
    gaps_of,
    holes_of,
)
from edge_road.runtime.events.marker import Mark, Marker
from edge_road.runtime.events.store import Change, Store, quarantine, rescue

log = logging.getLogger(__name__)

NewDraft = Callable[[str, Severity, dict[str, object]], Draft]
DEGRADED, DAMAGED = "storage_degraded", "storage_damaged"


@dataclass(frozen=True)
class Limits:
    """In bytes of event text."""

    disk: int
    memory: int


class Outbox:
    """Not for several threads at once; EventWriter sees to that."""

    def __init__(self, path: Path, vehicle: str, boot_id: str, limits: Limits, new_draft: NewDraft) -> None:
        self._path, self._vehicle, self._boot_id = path, vehicle, boot_id
        self._limits, self._new_draft = limits, new_draft
        self._store: Store | None = None
        self._unsaved: dict[int, Entry] = {}
        self._undeleted: set[int] = set()
        # The microsecond of the start: what is numbered before the file can be read meets no id in it.
        self._next_id, self._next_seq = round(SystemClock().utc().timestamp() * 1e6), 0
        self._fresh: list[Entry] = []
        self.trouble: str | None = None
        self._marker = Marker(path.with_name(path.name + ".mark"))
        self._unsettled = self._marker.marks()
        self.previous: dict[str, object] = {}
        """which boot came before this one, and the last event that is known of it"""
        self._open()

    @property
    def degraded(self) -> bool:
        return self.trouble is not None

    @property
    def unsaved(self) -> int:
        return len(self._unsaved)

    def waiting(self) -> int:
        stored = self._store.waiting if self._store else 0
        return max(0, stored - len(self._undeleted)) + len(self._unsaved)

    def record(self, drafts: Sequence[Draft]) -> list[Entry]:
        """Number and keep them; returns all that is new, gap records included, in order."""
        self._keep([self._numbered(draft) for draft in drafts])
        return self._take_fresh()

    def record_lost(self, count: int, reason: str) -> list[Entry]:
        """`count` events never came this far: they get numbers, and a gap that names them."""
        first = self._next_seq
        self._next_seq += count
        gap = Gap(self._boot_id, first, first + count - 1, count, reason)
        return self.record([self._gap_draft(gap)])

    def after(self, entry_id: int, limit: int) -> list[Entry]:
        """The next ones to deliver, oldest first."""
        entries: list[Entry] = []
        if self._store is not None:
            try:
                stored = self._store.after(entry_id, limit + len(self._undeleted))
                entries = [entry for entry in stored if entry.id not in self._undeleted]
            except sqlite3.Error as error:
                self._fail(error)
                return []
        entries += [self._unsaved[number] for number in sorted(self._unsaved) if number > entry_id]
        return entries[:limit]

    def delivered(self, ids: Iterable[int]) -> None:
        on_disk = {number for number in ids if self._unsaved.pop(number, None) is None}
        self._apply(Change(deletes=frozenset(on_disk)))

    def delivered_up_to(self, boot_id: str, seq: int, entry_id: int) -> None:
        """The backend has all events of this boot up to `seq`; what was not sent yet it cannot have."""
        known = self._unsaved.values()
        ids = {e.id for e in known if e.boot_id == boot_id and e.seq <= seq and e.id <= entry_id}
        try:
            ids |= self._store.ids_up_to(boot_id, seq, entry_id) if self._store else set()
        except sqlite3.Error as error:
            return self._fail(error)
        if ids:
            self.delivered(ids)

    def recover(self) -> list[Entry]:
        """Try the disk again; returns what is new to tell."""
        if self.degraded:
            was = self.trouble
            self._close_store()
            self._open()
            if not self.degraded:
                log.warning("events are stored again")
                self._keep([self._numbered(self._fault_draft("fault_end", DEGRADED, {"was": was}))])
        return self._take_fresh()

    def close(self) -> None:
        self._close_store()
        self._marker.close()

    def _open(self, damage: sqlite3.Error | None = None) -> None:
        """Open the file, or a new one in place of one with `damage`, and write down what memory holds."""
        try:
            self._store = self._replacement(damage) if damage else self._opened()
            self._next_id = max(self._next_id, self._store.last_id + 1)
            self._save()  # before the file is asked what it knows
            self._settle()
            self._save()
        except (sqlite3.Error, OSError) as error:
            return self._degrade(error)
        self._marker.forget({mark.boot_id for mark in self._marker.marks()} - {self._boot_id})
        self.trouble = None

    def _save(self) -> None:
        assert self._store is not None
        unsaved = tuple(self._unsaved[number] for number in sorted(self._unsaved))
        self._store.apply(Change(unsaved, frozenset(self._undeleted)))
        self._unsaved, self._undeleted = {}, set()

    def _opened(self) -> Store:
        try:
            return Store(self._path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            return self._replacement(error)

    def _replacement(self, damage: sqlite3.Error) -> Store:
        """The damaged file goes aside; what can be read of it waits for a new one, the rest is named."""
        log.error("the event store is damaged and is moved aside: %s", damage)
        found = rescue(quarantine(self._path))
        rescued = {e.id: e for e in found.entries if e.id not in self._undeleted}
        self._unsaved |= rescued
        self._next_id = max([self._next_id, *(number + 1 for number in rescued)])
        numbers: dict[str, list[int]] = {}
        for entry in found.entries:
            numbers.setdefault(entry.boot_id, []).append(entry.seq)
        gaps = holes_of(numbers, found.boots, found.from_the_front, DAMAGED)
        details = {"error": str(damage), "rescued": len(rescued), "lost": sum(gap.count for gap in gaps)}
        drafts = [*map(self._gap_draft, gaps), self._fault_draft("fault_begin", DAMAGED, details)]
        self._hold(self._numbered(draft) for draft in drafts)
        return Store(self._path)

    def _settle(self) -> None:
        """What earlier boots numbered but the store does not know of is lost: say so, once."""
        assert self._store is not None
        boots = self._store.boots()
        others = [boot for boot in boots if boot != self._boot_id]
        if others and not self.previous:
            self.previous = {"boot_id": others[0], "last_seq": boots[others[0]]}
        for mark in self._unsettled:
            stored = boots.get(mark.boot_id, -1)
            if mark.boot_id != self._boot_id and mark.seq > stored:
                gap = Gap(mark.boot_id, stored + 1, mark.seq, mark.seq - stored, "storage")
                self._hold([self._numbered(self._gap_draft(gap))])
        self._unsettled = []

    def _keep(self, entries: list[Entry]) -> None:
        gone = [] if self.degraded else self._evicted_from_disk(entries)
        entries += [self._numbered(self._gap_draft(gap)) for gap in gaps_of(gone, "no_room")]
        self._fresh += entries
        self._apply(Change(tuple(entries), frozenset(entry.id for entry in gone)))
        if self._next_seq:
            self._marker.write(Mark(self._boot_id, self._next_seq - 1), durable=self.degraded)

    def _evicted_from_disk(self, entries: Sequence[Entry]) -> list[Entry]:
        assert self._store is not None
        held = self._store.held_bytes + sum(entry.size for entry in entries)
        if not (excess := bytes_to_evict(held, self._limits.disk)):
            return []
        try:
            return choose(self._store.evictable(excess), excess)
        except sqlite3.Error as error:
            self._fail(error)
            return []

    def _apply(self, change: Change) -> None:
        if not self.degraded:
            assert self._store is not None
            try:
                return self._store.apply(change)
            except sqlite3.Error as error:
                self._fail(error)
                if not self.degraded:  # a new file has taken the place of a damaged one
                    return self._apply(change)
        self._unsaved |= {entry.id: entry for entry in change.inserts}
        self._undeleted |= change.deletes
        self._evict_from_memory()

    def _hold(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._unsaved[entry.id] = entry
            self._fresh.append(entry)

    def _evict_from_memory(self) -> None:
        excess = bytes_to_evict(sum(e.size for e in self._unsaved.values()), self._limits.memory)
        gone = choose(eviction_order(self._unsaved.values()), excess)
        for entry in gone:
            del self._unsaved[entry.id]
        self._hold(self._numbered(self._gap_draft(gap)) for gap in gaps_of(gone, "no_room_in_memory"))

    def _fail(self, error: sqlite3.Error) -> None:
        """What is damaged is replaced at once; what is full or broken is tried again later."""
        if isinstance(error, sqlite3.OperationalError):
            return self._degrade(error)
        self._close_store()
        self._open(damage=error)

    def _degrade(self, error: Exception) -> None:
        if self.trouble is None:
            self.trouble = str(error)
            log.error("events are kept in memory: %s", error)
            draft = self._fault_draft("fault_begin", DEGRADED, {"error": str(error)})
            self._hold([self._numbered(draft)])

    def _take_fresh(self) -> list[Entry]:
        fresh, self._fresh = self._fresh, []
        return sorted(fresh, key=lambda entry: entry.id)

    def _numbered(self, draft: Draft) -> Entry:
        event = Event(self._vehicle, self._boot_id, self._next_seq, draft)
        entry = Entry(self._next_id, self._boot_id, self._next_seq, draft.severity, event.to_json())
        self._next_id += 1
        self._next_seq += 1
        return entry

    def _gap_draft(self, gap: Gap) -> Draft:
        return self._new_draft(GAP, Severity.GAP, gap.details())

    def _fault_draft(self, kind: str, fault: str, details: dict[str, object]) -> Draft:
        return self._new_draft(kind, Severity.ALARM, {"fault": fault, **details})

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
