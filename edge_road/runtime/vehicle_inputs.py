"""What the vehicle tells about itself: speed, outside temperature, position; each with its age."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from edge_road.road_state import Position

Value = TypeVar("Value")

SPEED_S, AMBIENT_S, POSITION_S = 2.0, 120.0, 5.0
"""an older reading says nothing any more"""
FASTEST_MPS = 150.0
STANDING_MPS = 1.0
"""slower than this is standing: receivers at rest tell small speeds"""
COLDEST_C, WARMEST_C = -60.0, 70.0


@dataclass(frozen=True)
class Reading(Generic[Value]):
    value: Value
    received_mono_ns: int

    def at(self, now_ns: int, longest_s: float) -> Value | None:
        """The value while it is fresh; one from the future is none either."""
        return self.value if 0 <= now_ns - self.received_mono_ns <= longest_s * 1e9 else None


@dataclass(frozen=True)
class VehicleInputs:
    """Everything is optional. `with_...` refuses nonsense with a ValueError, so that it never gets in."""

    speed: Reading[float] | None = None
    """metres a second, of either direction"""
    ambient: Reading[float] | None = None
    """degrees Celsius of the air outside"""
    position: Reading[Position] | None = None

    def with_speed(self, metres_per_second: float, now_ns: int) -> VehicleInputs:
        value = abs(_within(metres_per_second, -FASTEST_MPS, FASTEST_MPS, "a speed in m/s"))
        return replace(self, speed=Reading(value, now_ns))

    def with_ambient(self, celsius: float, now_ns: int) -> VehicleInputs:
        value = _within(celsius, COLDEST_C, WARMEST_C, "an outside temperature in degrees Celsius")
        return replace(self, ambient=Reading(value, now_ns))

    def with_position(self, position: Position, now_ns: int) -> VehicleInputs:
        return replace(self, position=Reading(position, now_ns))

    def speed_mps(self, now_ns: int) -> float | None:
        return self.speed.at(now_ns, SPEED_S) if self.speed else None

    def ambient_c(self, now_ns: int) -> float | None:
        return self.ambient.at(now_ns, AMBIENT_S) if self.ambient else None

    def position_at(self, now_ns: int) -> Position | None:
        return self.position.at(now_ns, POSITION_S) if self.position else None


NO_INPUTS = VehicleInputs()


def _within(value: float, least: float, most: float, what: str) -> float:
    if not (math.isfinite(value) and least <= value <= most):
        raise ValueError(f"{value!r} is not {what} ({least:g} to {most:g})")
    return float(value)
