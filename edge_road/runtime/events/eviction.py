"""Which events make room when there is none left, and what is written down about their loss. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edge_road.runtime.events.event import Severity

ROOM_SHARE = 0.1
"""evict this share of the bound at once, so that gaps are few and each covers many"""


@dataclass(frozen=True)
class Entry:
    """A stored event, as far as eviction and delivery are concerned."""

    id: int
    """order in the store"""
    boot_id: str
    seq: int
    severity: int
    line: str

    @property
    def size(self) -> int:
        return len(self.line)


@dataclass(frozen=True)
class Gap:
    """`count` events of `boot_id`, numbered between `first` and `last`, will never be delivered."""

    boot_id: str
    first: int
    last: int
    count: int
    reason: str

    def details(self) -> dict[str, Any]:
        return {
            "boot_id": self.boot_id,
            "from": self.first,
            "to": self.last,
            "count": self.count,
            "reason": self.reason,
        }


def bytes_to_evict(held: int, bound: int) -> int:
    """Nothing while there is room; else the excess and some room for what comes next."""
    return 0 if held <= bound else held - bound + round(ROOM_SHARE * bound)


def eviction_order(entries: Iterable[Entry]) -> list[Entry]:
    """The least severe first, then the oldest."""
    return sorted(entries, key=lambda entry: (entry.severity, entry.id))


def choose(in_order: Iterable[Entry], excess: int) -> list[Entry]:
    """The first ones, until `excess` bytes are free; gap records only to be joined with newer ones."""
    chosen: list[Entry] = []
    freed = 0
    for entry in in_order if excess else ():
        if freed < excess or entry.severity == Severity.GAP:
            chosen.append(entry)
            freed += entry.size
    return chosen if any(entry.severity < Severity.GAP for entry in chosen) else []


def gaps_of(lost: Sequence[Entry], reason: str) -> list[Gap]:
    """One gap for each boot that lost something; a lost gap record hands on what it told of."""
    gaps: dict[str, Gap] = {}
    for entry in lost:
        own = Gap(entry.boot_id, entry.seq, entry.seq, 1, reason)
        for gap in (own, *_told_by(entry, reason)):
            before = gaps.get(gap.boot_id)
            gaps[gap.boot_id] = gap if before is None else _joined(before, gap)
    return list(gaps.values())


def _told_by(entry: Entry, reason: str) -> list[Gap]:
    if entry.severity < Severity.GAP:
        return []
    told = json.loads(entry.line)["details"]
    return [Gap(told["boot_id"], told["from"], told["to"], told["count"], reason)]


def _joined(one: Gap, other: Gap) -> Gap:
    first, last = min(one.first, other.first), max(one.last, other.last)
    return Gap(one.boot_id, first, last, one.count + other.count, one.reason)


def holes_of(
    numbers: Mapping[str, Sequence[int]], boots: Mapping[str, int], from_the_front: bool, reason: str
) -> list[Gap]:
    """One gap for each boot of which rescued events are missing; `boots` are their last numbers, in order.

    Events leave in order, so after the first one that still waits all others do. When that first one cannot
    be read, everything before counts as lost: better to name what was delivered than to hide what was not.
    """
    gaps, waiting = [], not from_the_front
    for boot in dict.fromkeys((*boots, *numbers)):
        seqs = numbers.get(boot, ())
        if not seqs and not waiting:
            continue  # all of it was delivered
        first = 0 if waiting else min(seqs)
        last = max((boots.get(boot, 0), *seqs))
        waiting = True
        missing = sorted(set(range(first, last + 1)) - set(seqs))
        if missing:
            gaps.append(Gap(boot, missing[0], missing[-1], len(missing), reason))
    return gaps
