"""Messages as a daemon would make them."""

from __future__ import annotations

import json
import zlib
from typing import Any

from edge_road.road_state import RoadState

BASE: dict[str, Any] = {
    "vehicle": "van",
    "boot_id": "b",
    "published_mono_ns": 1,
    "captured_utc": None,
    "clock_synced": False,
    "valid_for_ms": 1000,
    "model_digest": "m",
    "config_digest": "c",
    "version": "0",
}
SHARES = {
    "dry": {"dry": 0.9, "wet": 0.1, "icy": 0.0},
    "wet": {"dry": 0.1, "wet": 0.8, "icy": 0.1},
    "icy": {"dry": 0.0, "wet": 0.05, "icy": 0.95},
}


def road(state: str, seq: int, **more: Any) -> RoadState:
    seen = {"probabilities": SHARES[state], "captured_mono_ns": 1, "age_ms": 12.0}
    return RoadState.model_validate({**BASE, "state": state, "seq": seq, **seen, **more})


def blind(reason: str, seq: int, **more: Any) -> RoadState:
    seen = {"probabilities": {}, "reasons": (reason,), "captured_mono_ns": None, "age_ms": None}
    return RoadState.model_validate({**BASE, "state": "unknown", "seq": seq, **seen, **more})


def changed(line: str | bytes, **changes: Any) -> bytes:
    """A message or event, changed by somebody who knows how to make the checksum right."""
    values = {**json.loads(line), **changes}
    del values["crc32"]
    crc = zlib.crc32(json.dumps(values, separators=(",", ":")).encode())
    return json.dumps({**values, "crc32": crc}).encode()
