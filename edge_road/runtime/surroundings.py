"""Whom the supervisor tells, and whom it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.live_line import LiveLine
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.rehearsal import NO_REHEARSAL, Rehearsal
from edge_road.runtime.signals import Requests
from edge_road.runtime.status import Status
from edge_road.runtime.systemd import Systemd
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs


@dataclass(frozen=True)
class Surroundings:
    publisher: Publisher
    journal: Journal
    status: Status
    systemd: Systemd
    live: LiveLine
    requests: Requests
    inputs: Callable[[], VehicleInputs] = lambda: NO_INPUTS
    record: Callable[[dict[str, Any]], None] = lambda step: None
    """keeps everything that decides what is said, for a replay"""
    load_again: Callable[[], Vehicle] | None = None
    """reads the vehicle file once more"""
    start_outputs: Callable[[], None] = lambda: None
    use_outputs: Callable[[Vehicle], None] = lambda vehicle: None
    """opens and closes outputs so that they are those of the vehicle, or raises and changes none"""
    restore_outputs: Callable[[Vehicle], None] = lambda vehicle: None
    """the same for settings that were good once: leaves out, and logs, what cannot be opened any more"""
    bundle_wished: Callable[[], Path | None] = lambda: None
    """that waits to be tried"""
    begin_smoke: Callable[[Vehicle, str], None] = lambda vehicle, digest: None
    """called once, when the first model is ready"""
    instead_of_damaged: Callable[[], Path | None] = lambda: None
    """the bundle to run when the one that was accepted is found damaged at the start"""
    rehearsal: Rehearsal = NO_REHEARSAL
    settle: Callable[[Outcome], None] = lambda outcome: None
    """keeps how a new bundle has fared"""
