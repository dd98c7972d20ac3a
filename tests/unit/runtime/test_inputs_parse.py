from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_road.errors import EdgeRoadError
from edge_road.runtime.inputs_parse import LARGEST_BYTES, take_gpsd, take_json
from edge_road.runtime.vehicle_inputs import NO_INPUTS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["speed_mps", "ambient_c", "position", "class", "lat", "x"]), inner)
    ),
)


def test_all_of_it_can_come_at_once() -> None:
    payload = b'{"speed_mps": -13.9, "ambient_c": -2.5, "position": {"latitude": 48.1, "longitude": 11.5}}'
    inputs = take_json(NO_INPUTS, payload, 5)
    assert (inputs.speed_mps(5), inputs.ambient_c(5)) == (13.9, -2.5)
    position = inputs.position_at(5)
    assert position is not None
    assert position.latitude == 48.1


def test_what_is_not_told_stays() -> None:
    inputs = take_json(take_json(NO_INPUTS, b'{"speed_mps": 3}', 1), b'{"ambient_c": 4}', 2)
    assert (inputs.speed_mps(2), inputs.ambient_c(2)) == (3.0, 4.0)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{}",
        b"[]",
        b'{"speed": 3}',
        b'{"speed_mps": true}',
        b'{"speed_mps": "3"}',
        b'{"speed_mps": NaN}',
        b'{"speed_mps": 1e999}',
        b'{"speed_mps": 900}',
        b'{"ambient_c": 400}',
        b'{"position": {"latitude": 91, "longitude": 0}}',
        b'{"position": {"latitude": 1}}',
        b'{"speed_mps": 3, "more": 1}',
        b'{"speed_mps": 3' + b" " * LARGEST_BYTES + b"}",
        b"[" * 4000,
    ],
)
def test_nonsense_is_refused_and_changes_nothing(payload: bytes) -> None:
    with pytest.raises(EdgeRoadError):
        take_json(NO_INPUTS, payload, 1)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_but_a_refusal_comes_of_it(payload: bytes) -> None:
    for take in (take_json, take_gpsd):
        try:
            inputs = take(NO_INPUTS, payload, 1)
        except EdgeRoadError:
            continue
        speed = inputs.speed_mps(1)
        assert speed is None or 0 <= speed <= 150


def test_gpsd_tells_a_position_only_with_a_fix() -> None:
    fix = {"class": "TPV", "mode": 3, "lat": 48.1, "lon": 11.5, "eph": 4.2, "speed": 8.5}
    inputs = take_gpsd(NO_INPUTS, json.dumps(fix).encode(), 1)
    position = inputs.position_at(1)
    assert position is not None
    assert (position.accuracy_m, inputs.speed_mps(1)) == (4.2, 8.5)
    for other in ({**fix, "mode": 1}, {"class": "SKY"}, {"class": "VERSION", "release": "3"}):
        assert take_gpsd(NO_INPUTS, json.dumps(other).encode(), 1) == NO_INPUTS
