from __future__ import annotations

import pytest

from edge_road.road_state import Position
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs

SECOND = 10**9
HERE = Position(latitude=60.2, longitude=24.9)


def test_a_vehicle_that_says_nothing_has_no_values() -> None:
    assert NO_INPUTS.speed_mps(5) is NO_INPUTS.ambient_c(5) is NO_INPUTS.position_at(5) is None


def test_each_value_is_there_while_it_is_fresh() -> None:
    inputs = VehicleInputs().with_speed(13.9, 0).with_ambient(-4, 0).with_position(HERE, 0)
    now_ns = 2 * SECOND
    assert (inputs.speed_mps(now_ns), inputs.ambient_c(now_ns), inputs.position_at(now_ns)) == (
        13.9,
        -4.0,
        HERE,
    )
    assert inputs.speed_mps(now_ns + 1) is None
    assert inputs.position_at(5 * SECOND + 1) is None
    assert inputs.ambient_c(120 * SECOND) == -4.0
    assert inputs.ambient_c(120 * SECOND + 1) is None


def test_a_reading_from_the_future_is_none() -> None:
    assert VehicleInputs().with_speed(10, 5).speed_mps(4) is None


def test_driving_backwards_is_a_speed_too() -> None:
    assert VehicleInputs().with_speed(-2.5, 0).speed_mps(0) == 2.5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 151.0, -151.0])
def test_a_speed_that_makes_no_sense_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not a speed"):
        VehicleInputs().with_speed(value, 0)


@pytest.mark.parametrize("value", [float("nan"), -61.0, 70.1])
def test_a_temperature_that_makes_no_sense_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="outside temperature"):
        VehicleInputs().with_ambient(value, 0)
