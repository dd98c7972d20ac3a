"""What a vehicle may tell us, in JSON or as gpsd says it: small, strict, never trusted. Pure."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from edge_road.errors import EdgeRoadError
from edge_road.road_state import Position
from edge_road.runtime.vehicle_inputs import VehicleInputs

LARGEST_BYTES = 4096
KEYS = frozenset({"speed_mps", "ambient_c", "position"})
LEAST_FIX = 2
"""gpsd's TPV mode: 2 is a fix in two dimensions"""


def take_json(inputs: VehicleInputs, payload: bytes, now_ns: int) -> VehicleInputs:
    """`{"speed_mps": 13.9, "ambient_c": -2.5, "position": {"latitude": 48.1, "longitude": 11.5}}`."""
    try:
        values = _object(payload)
        if not values or not KEYS.issuperset(values):
            raise ValueError(f"expected some of {', '.join(sorted(KEYS))}")
        if "speed_mps" in values:
            inputs = inputs.with_speed(_number(values["speed_mps"]), now_ns)
        if "ambient_c" in values:
            inputs = inputs.with_ambient(_number(values["ambient_c"]), now_ns)
        if "position" in values:
            inputs = inputs.with_position(Position.model_validate(values["position"], strict=True), now_ns)
        return inputs
    except (ValueError, ValidationError, TypeError, OverflowError, RecursionError) as error:
        raise EdgeRoadError("not a vehicle input", got=str(error)[:200]) from None


def take_gpsd(inputs: VehicleInputs, line: bytes, now_ns: int) -> VehicleInputs:
    """A report of gpsd; only a position with a fix (class TPV) says something to us."""
    try:
        report = _object(line)
        if report.get("class") != "TPV" or report.get("mode", 0) < LEAST_FIX:
            return inputs
        place = {"latitude": _number(report["lat"]), "longitude": _number(report["lon"])}
        if "eph" in report:
            place["accuracy_m"] = _number(report["eph"])
        inputs = inputs.with_position(Position.model_validate(place), now_ns)
        return inputs.with_speed(_number(report["speed"]), now_ns) if "speed" in report else inputs
    except (ValueError, KeyError, ValidationError, TypeError, OverflowError, RecursionError) as error:
        raise EdgeRoadError("not a report of gpsd", got=str(error)[:200]) from None


def _object(payload: bytes) -> dict[str, Any]:
    if len(payload) > LARGEST_BYTES:
        raise ValueError("too large")
    values = json.loads(payload)
    if not isinstance(values, dict):
        raise ValueError("not an object")
    return values


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is not a number")
    return float(value)
