"""Keeps everything that decided what was said, so that a drive can be replayed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from edge_road.errors import ConfigError
from edge_road.runtime.evidence import Record, Report
from edge_road.runtime.outputs.json_lines import JsonLines
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_digest import without_password
from edge_road.runtime.vehicle_inputs import VehicleInputs
from edge_road.runtime.vehicle_outputs import JsonLinesOutput


class Step(Record):
    """One step of the supervisor."""

    mono_ns: int | None = None
    report: Report | None = None
    """what the worker sent"""
    outage: str | None = None
    """why there can be no frames"""
    inputs: VehicleInputs | None = None
    """what the vehicle told of itself"""
    say: bool = False
    """a message was made"""


class Recorder:
    """Never waits for the disk: a thread writes."""

    def __init__(self, path: Path, vehicle: Vehicle, remarks: tuple[str, ...] = ()) -> None:
        if os.path.isfile(path) and os.path.getsize(path):  # two drives in one file cannot be replayed
            raise ConfigError(
                "there is a recording in this file already", where=path, fix="name another file"
            )
        self._lines = JsonLines(JsonLinesOutput(path=str(path)), mode=0o600)
        self.record({"vehicle": without_password(vehicle).model_dump(mode="json"), "remarks": remarks})

    def record(self, step: dict[str, Any]) -> None:
        self._lines.write(json.dumps(step, separators=(",", ":")))

    def close(self) -> None:
        self._lines.close(timeout_s=0.5)
