"""New settings for a running daemon: all of them or none."""

from __future__ import annotations

from edge_road.errors import ConfigError
from edge_road.runtime.snapshot import snapshot_path
from edge_road.runtime.vehicle import Vehicle

FIXED = ("vehicle", "speed", "events", "gpsd", "production")
"""a change of these needs a new start: others know us by them"""


def check_reload(old: Vehicle, new: Vehicle) -> None:
    changed = [name for name in FIXED if getattr(old, name) != getattr(new, name)]
    if changed:
        raise ConfigError(
            "these settings cannot change while the daemon runs",
            got=", ".join(changed),
            fix="restart the daemon",
        )


def needs_new_worker(old: Vehicle, new: Vehicle) -> bool:
    """Everything but where messages go, and how they are decided, is the worker's; so is a page's picture."""
    ours = {"outputs", "decision", "heartbeat_hz", "smoke_at_start"}
    differ = old.model_dump(exclude=ours) != new.model_dump(exclude=ours)
    return differ or snapshot_path(old) != snapshot_path(new)


def only_bundle_differs(old: Vehicle, new: Vehicle) -> bool:
    """Then the worker can change its model while it goes on; a fake backend has none to change."""
    same = old.model_copy(update={"bundle": new.bundle}) == new
    return same and old.bundle != new.bundle and new.backend != "fake"
