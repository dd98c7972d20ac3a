"""All vehicles of a broker: topics and payloads in, rows for the page and records for the store out."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from edge_road.client import EVENT_SCHEMA, STATE_SCHEMA, parse
from edge_road.clock import Clock, utc_text
from edge_road.fleet.track import Point
from edge_road.fleet.vehicle import VehicleView

MOST_VEHICLES = 2000
FORGOTTEN_S = 3600.0
"""a vehicle that has been silent for so long gives its place to a new one, when all are taken"""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
SEVERITIES = ("note", "warning", "alarm", "gap")


@dataclass(frozen=True)
class StoredEvent:
    vehicle: str
    boot_id: str
    seq: int
    utc: str
    kind: str
    severity: str
    line: str


@dataclass(frozen=True)
class StoredPoint:
    vehicle: str
    utc: str
    point: Point


Record = StoredEvent | StoredPoint


class Fleet:
    """Written by the broker's thread, read by the page's."""

    def __init__(
        self, prefix: str, clock: Clock, keep: Callable[[Record], None] = lambda record: None
    ) -> None:
        self._prefix, self._clock, self._keep = prefix, clock, keep
        self._vehicles: dict[str, VehicleView] = {}
        self._lock = threading.Lock()
        self.refused = 0
        """payloads of no vehicle: damaged, foreign, under a name that is not theirs, or one too many"""

    def take(self, topic: str, payload: bytes) -> None:
        """Whatever comes; nothing makes it raise."""
        name, _, what = topic.removeprefix(f"{self._prefix}/").partition("/")
        with self._lock:
            if what == "state":
                self._take_state(name, payload)
            elif what == "events":
                self._take_event(name, payload)

    def _take_state(self, name: str, payload: bytes) -> None:
        message = parse(payload, STATE_SCHEMA) or {}
        vehicle = self._known(name, message.get("vehicle") == name)
        point = None if vehicle is None else vehicle.take_state(payload)
        if point is not None:
            self._keep(StoredPoint(name, utc_text(self._clock.utc()), point))

    def _take_event(self, name: str, payload: bytes) -> None:
        event = parse(payload, EVENT_SCHEMA) or {}
        record = _event_record(name, event, payload)
        vehicle = self._known(name, record is not None)
        if vehicle is not None and record is not None and vehicle.take_event(shown_event(record, event)):
            self._keep(record)

    def _known(self, name: str, is_sound: bool) -> VehicleView | None:
        """The vehicle that speaks; what is not sound is counted, and makes nobody known."""
        vehicle = self._vehicles.get(name)
        if is_sound:
            vehicle = vehicle or self._new(name)
            self.refused += vehicle is None
            return vehicle
        if vehicle is None:
            self.refused += 1
        else:
            vehicle.refused += 1
        return None

    def _new(self, name: str) -> VehicleView | None:
        if not NAME.fullmatch(name):
            return None
        if len(self._vehicles) >= MOST_VEHICLES and not self._forget_one():
            return None
        vehicle = VehicleView(name, lambda: self._clock.mono_ns() / 1e9)
        self._vehicles[name] = vehicle
        return vehicle

    def _forget_one(self) -> bool:
        def silence_s(name: str) -> float:
            silent_s = self._vehicles[name].silent_s()
            return FORGOTTEN_S if silent_s is None else silent_s

        quietest = max(self._vehicles, key=silence_s)
        return silence_s(quietest) >= FORGOTTEN_S and self._vehicles.pop(quietest) is not None

    def restore(self, points: list[StoredPoint]) -> None:
        """Tracks of an earlier time; what the road is now, only a new message can tell."""
        with self._lock:
            for stored in points:
                vehicle = self._vehicles.get(stored.vehicle) or self._new(stored.vehicle)
                if vehicle is not None:
                    vehicle.move(stored.point)

    def rows(self) -> list[dict[str, Any]]:
        with self._lock:
            return [self._vehicles[name].row() for name in sorted(self._vehicles)]

    def tracks(self) -> dict[str, list[Point]]:
        with self._lock:
            return {name: list(vehicle.track.points) for name, vehicle in self._vehicles.items()}

    def events(self, name: str) -> list[dict[str, Any]] | None:
        """The newest first."""
        with self._lock:
            vehicle = self._vehicles.get(name)
            return None if vehicle is None else list(reversed(vehicle.events))


def _event_record(name: str, event: Mapping[str, Any], payload: bytes) -> StoredEvent | None:
    """None unless it is whole. Brokers bind a vehicle to its topic: topic and text must name the same one."""
    if event.get("vehicle") != name:
        return None
    try:
        boot_id, seq, utc, kind = event["boot_id"], event["seq"], event["utc"], event["kind"]
        severity, details = event["severity"], event["details"]
    except KeyError:
        return None
    texts = all(isinstance(text, str) and len(text) <= 128 for text in (boot_id, utc, kind))
    is_whole = texts and type(seq) is int and 0 <= seq < 2**53 and isinstance(details, dict)
    if not is_whole or severity not in SEVERITIES:
        return None
    return StoredEvent(name, boot_id, seq, utc, kind, severity, payload.decode())


def shown_event(record: StoredEvent, event: Mapping[str, Any]) -> dict[str, Any]:
    details = event.get("details", {})
    words = [details[key] for key in ("state", "fault", "reason") if isinstance(details.get(key), str)]
    return {
        "boot_id": record.boot_id,
        "seq": record.seq,
        "utc": record.utc,
        "kind": record.kind,
        "severity": record.severity,
        "text": ", ".join(words)[:128],
    }
