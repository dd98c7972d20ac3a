"""What the supervisor tells the event store: it watches the messages and notes what happened."""

from __future__ import annotations

import os
from pathlib import Path

from edge_road import __version__
from edge_road.clock import Clock, clock_synced, utc_text
from edge_road.road_state import RoadState
from edge_road.runtime.events.event import Draft, Severity
from edge_road.runtime.events.outbox import Limits, Outbox
from edge_road.runtime.events.watcher import Seen, watch
from edge_road.runtime.events.writer import EventWriter
from edge_road.runtime.publisher import NO_MODEL
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_digest import vehicle_digest
from edge_road.workspace import home


def state_folder() -> Path:
    """What systemd gives us (StateDirectory=), else a folder of the workspace."""
    given = os.environ.get("STATE_DIRECTORY")
    return Path(given.split(":")[0]) if given else home() / "runs" / ".state"


class Journal:
    """Every method returns at once."""

    def __init__(self, vehicle: Vehicle, boot_id: str, clock: Clock) -> None:
        self._vehicle, self._boot_id, self._clock = vehicle, boot_id, clock
        self._seen = Seen()
        self.writer = EventWriter(self._open, self._boot)

    def start(self) -> None:
        self.writer.start()

    def watch(self, message: RoadState) -> None:
        self._seen, happenings = watch(self._seen, message, NO_MODEL)
        for happening in happenings:
            self.note(happening.kind, happening.severity, dict(happening.details))

    def note(self, kind: str, severity: Severity, details: dict[str, object]) -> None:
        self.writer.record(self._draft(kind, severity, details))

    def _open(self) -> Outbox:
        settings = self._vehicle.events
        path = settings.path or state_folder() / f"events-{self._vehicle.vehicle}.sqlite"
        limits = Limits(round(settings.most_mb * 2**20), round(settings.most_unsaved_kb * 1024))
        return Outbox(path, self._vehicle.vehicle, self._boot_id, limits, self._draft)

    def _boot(self, previous: dict[str, object]) -> Draft:
        details: dict[str, object] = {
            "version": __version__,
            "config_digest": vehicle_digest(self._vehicle),
            "previous": previous,
        }
        return self._draft("boot", Severity.NOTE, details)

    def _draft(self, kind: str, severity: Severity, details: dict[str, object]) -> Draft:
        utc = utc_text(self._clock.utc())
        return Draft(kind, severity, self._clock.mono_ns(), utc, clock_synced(), details)
