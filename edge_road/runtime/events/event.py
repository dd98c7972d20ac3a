"""An event: something that happened once and must reach the backend, with an id that never changes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from edge_road.errors import EdgeRoadError

SCHEMA = "edge_road.event/1"
GAP = "gap"


class Severity(IntEnum):
    """When room is short, lower ones go first; a gap never does."""

    NOTE = 0
    WARNING = 1
    ALARM = 2
    GAP = 3


@dataclass(frozen=True)
class Draft:
    """An event that has happened but has no number yet."""

    kind: str
    severity: Severity
    mono_ns: int
    utc: str
    clock_synced: bool
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """`(vehicle, boot_id, seq)` is its id; `seq` counts the events of one start without a hole."""

    vehicle: str
    boot_id: str
    seq: int
    draft: Draft

    def to_json(self) -> str:
        """One line; `crc32` covers every other byte of it, in this order."""
        draft = self.draft
        values = {
            "schema": SCHEMA,
            "vehicle": self.vehicle,
            "boot_id": self.boot_id,
            "seq": self.seq,
            "kind": draft.kind,
            "severity": draft.severity.name.lower(),
            "mono_ns": draft.mono_ns,
            "utc": draft.utc,
            "clock_synced": draft.clock_synced,
            "details": dict(draft.details),
        }
        return _dump({**values, "crc32": _crc(values)})


def parse_event(line: str | bytes) -> Event:
    """The event behind one line; damaged, foreign and incomplete lines are refused."""
    try:
        values = json.loads(line)
        crc = values.pop("crc32")
        if values.pop("schema") != SCHEMA or crc != _crc({"schema": SCHEMA, **values}):
            raise ValueError("the checksum or the schema does not match")
        draft = Draft(
            kind=str(values["kind"]),
            severity=Severity[values["severity"].upper()],
            mono_ns=int(values["mono_ns"]),
            utc=str(values["utc"]),
            clock_synced=bool(values["clock_synced"]),
            details=dict(values["details"]),
        )
        return Event(str(values["vehicle"]), str(values["boot_id"]), int(values["seq"]), draft)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EdgeRoadError("not an event", got=str(error)[:300]) from None


def _dump(values: Mapping[str, Any]) -> str:
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def _crc(values: Mapping[str, Any]) -> int:
    return zlib.crc32(_dump(values).encode())
