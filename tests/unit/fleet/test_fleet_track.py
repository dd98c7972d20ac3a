"""A track stays small, follows the road and survives odd positions."""

from __future__ import annotations

import math
from typing import Any

import pytest

from edge_road.fleet.track import MOST_POINTS, Point, Track, distance_m, point_of

METRE = 360 / 40_030_174
"""of latitude, in degrees"""


def test_a_parked_vehicle_adds_no_points() -> None:
    track = Track()
    assert track.add(Point(47.0, 8.0, "dry"))
    assert not any(track.add(Point(47.0 + METRE * n, 8.0, "dry")) for n in range(15))


def test_a_new_state_is_a_point_even_at_a_standstill() -> None:
    track = Track()
    track.add(Point(47.0, 8.0, "dry"))
    assert track.add(Point(47.0, 8.0, "icy"))


def test_a_long_drive_stays_small_and_keeps_its_beginning_and_its_end() -> None:
    track = Track()
    for number in range(20_000):
        track.add(Point(47.0 + 25 * METRE * number, 8.0, "wet"))
    assert MOST_POINTS / 4 < len(track.points) <= MOST_POINTS
    assert track.points[0].latitude == 47.0
    assert distance_m(track.points[-1], Point(47.0 + 25 * METRE * 19_999, 8.0, "wet")) < 2 * track.step_m


def test_distances_are_those_of_the_great_circle() -> None:
    zurich, geneva = Point(47.3769, 8.5417, ""), Point(46.2044, 6.1432, "")
    a, b = math.radians(zurich.latitude), math.radians(geneva.latitude)
    along = math.radians(zurich.longitude - geneva.longitude)
    great_circle_m = 6_371_000 * math.acos(
        math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(along)
    )
    assert distance_m(zurich, geneva) == pytest.approx(great_circle_m, rel=0.01)


def test_the_date_line_is_not_the_way_round_the_world() -> None:
    assert distance_m(Point(0, 179.999, ""), Point(0, -179.999, "")) < 300


@pytest.mark.parametrize(
    "position",
    [
        None,
        "47, 8",
        {"latitude": 91, "longitude": 8},
        {"latitude": float("nan"), "longitude": 8},
        {"latitude": True, "longitude": 8},
        {"latitude": "47", "longitude": 8},
        {"longitude": 8},
    ],
)
def test_odd_positions_are_none(position: Any) -> None:
    assert point_of({"position": position}, "dry") is None
