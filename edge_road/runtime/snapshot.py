"""The newest picture as a small JPEG, where the worker leaves it and the web server finds it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from edge_road.clock import Clock
from edge_road.runtime.lock import lock_folder
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput

LARGEST_BYTES = 2 * 2**20
FRESH_S = 3.0
PICTURES = (".jpg", ".part", ".parts.json", ".parts.part", ".parts.wish")
"""also the parts of one, and the wish for them"""


def snapshot_path(vehicle: Vehicle) -> Path | None:
    """None unless an output asks for pictures: they may show people."""
    wanted = any(isinstance(output, HttpOutput) and output.snapshots for output in vehicle.outputs)
    return lock_folder() / f"{vehicle.vehicle}.jpg" if wanted else None


def write_snapshot(path: Path, jpeg: bytes) -> None:
    """Whole or not at all; it need not survive a power cut."""
    temporary = path.with_suffix(".part")
    temporary.write_bytes(jpeg)
    os.replace(temporary, path)


def forget_pictures(vehicle: str) -> None:
    """What shows the road to the page is not left lying about, nor by a daemon that was killed."""
    for kind in PICTURES:
        with suppress(OSError):
            (lock_folder() / f"{vehicle}{kind}").unlink(missing_ok=True)


def read_snapshot(vehicle: Vehicle, now: Clock) -> bytes | None:
    """None when there is none, or when it is old: a frozen picture would be a lie."""
    path = snapshot_path(vehicle)
    if path is None:
        return None
    try:
        age_s = now.utc().timestamp() - path.stat().st_mtime
        content = path.read_bytes() if abs(age_s) <= FRESH_S else b""
    except OSError:
        return None
    return content if 0 < len(content) <= LARGEST_BYTES else None
