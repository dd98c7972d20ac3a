"""Where a vehicle has been and what the road was there: few points, however long the drive. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EARTH_M = 6_371_000.0
FINEST_STEP_M = 20.0
MOST_POINTS = 256


@dataclass(frozen=True)
class Point:
    latitude: float
    longitude: float
    state: str


@dataclass
class Track:
    """When it is full, every second point goes and the step doubles: old and new are equally coarse."""

    points: list[Point] = field(default_factory=list)
    step_m: float = FINEST_STEP_M

    def add(self, point: Point) -> bool:
        """True when the point says something new: far enough from the last one, or another state."""
        if self.points:
            last = self.points[-1]
            if last.state == point.state and distance_m(last, point) < self.step_m:
                return False
        self.points.append(point)
        if len(self.points) > MOST_POINTS:
            self.points = [*self.points[:-1:2], point]
            self.step_m *= 2
        return True


def distance_m(first: Point, second: Point) -> float:
    """On a sphere, flattened where the two are (equirectangular): good to 1 % below 100 km."""
    across = math.radians(_turn(second.longitude - first.longitude))
    up = math.radians(second.latitude - first.latitude)
    middle = math.radians((first.latitude + second.latitude) / 2)
    return EARTH_M * math.hypot(across * math.cos(middle), up)


def _turn(degrees: float) -> float:
    """The short way round, also over the date line."""
    return (degrees + 180.0) % 360.0 - 180.0


def point_of(message: Mapping[str, Any], state: str) -> Point | None:
    """From a message whose checksum is right, but whose author may be wrong."""
    position = message.get("position")
    if not isinstance(position, dict):
        return None
    latitude, longitude = _angle(position.get("latitude"), 90.0), _angle(position.get("longitude"), 180.0)
    return None if latitude is None or longitude is None else Point(latitude, longitude, state)


def _angle(value: Any, most: float) -> float | None:
    """To a tenth of a metre."""
    return round(float(value), 6) if type(value) in (int, float) and -most <= value <= most else None
