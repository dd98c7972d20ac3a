"""How the live page asks the worker for the parts of a picture: a wish in one file, the answer in another."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from edge_road.clock import Clock
from edge_road.runtime.snapshot import snapshot_path, write_snapshot
from edge_road.runtime.vehicle import Region, Vehicle

WISH_S = 5.0
"""a page that looks at the parts asks again every second"""
LARGEST_BYTES = 256 * 1024


def parts_path(vehicle: Vehicle) -> Path | None:
    """None unless pictures may be seen."""
    picture = snapshot_path(vehicle)
    return None if picture is None else picture.with_suffix(".parts.json")


def wish(path: Path) -> None:
    path.with_suffix(".wish").touch()


def is_wished(path: Path, machine: Clock) -> bool:
    try:
        age_s = machine.utc().timestamp() - os.stat(path.with_suffix(".wish")).st_mtime
    except OSError:
        return False
    return abs(age_s) <= WISH_S


def write_parts(path: Path, regions: list[dict[str, Any]], seconds: float) -> None:
    text = json.dumps({"regions": regions, "seconds": round(seconds, 1)}, allow_nan=False)
    write_snapshot(path, text.encode())


def read_parts(path: Path | None) -> dict[str, Any]:
    """Without regions when there is nothing to read."""
    nothing = {"regions": [], "seconds": 0.0}
    if path is None:
        return nothing
    try:
        content = path.read_bytes()
        return {**nothing, **json.loads(content)} if len(content) <= LARGEST_BYTES else nothing
    except (OSError, ValueError, TypeError):
        return nothing


def place_of(region: Region) -> dict[str, Any]:
    return {"name": region.name, **region.crop.model_dump()}
