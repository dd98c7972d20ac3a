"""Numbers of thousands of digits and values nested thousands deep: refused in our words, by every reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge_road.config import check_settings, load_settings, parse_toml
from edge_road.errors import EdgeRoadError
from edge_road.road_state import parse_message
from edge_road.runtime.crop_setup import parse_change
from edge_road.runtime.events.event import parse_event
from edge_road.runtime.inputs_parse import take_gpsd, take_json
from edge_road.runtime.outputs.delivery import parse_ack
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS

HUGE = b"1" + b"0" * 400
"""more than a float holds"""
LONG = b"9" * 5000
"""more than Python turns into an integer"""


def read_vehicle(content: bytes) -> object:
    return check_settings(Vehicle, parse_toml(content.decode(), "van.toml"), where="van.toml")


READERS: dict[str, Callable[[bytes], object]] = {
    "inputs": lambda content: take_json(NO_INPUTS, content, 1),
    "gpsd": lambda content: take_gpsd(NO_INPUTS, content, 1),
    "message": parse_message,
    "event": parse_event,
    "change": parse_change,
    "ack": parse_ack,
    "vehicle": read_vehicle,
}


@pytest.mark.parametrize(
    ("reader", "content"),
    [
        ("inputs", b'{"speed_mps":%s}' % HUGE),
        ("inputs", b'{"position":{"latitude":%s,"longitude":1}}' % HUGE),
        ("gpsd", b'{"class":"TPV","mode":3,"lat":%s,"lon":1}' % HUGE),
        ("gpsd", b'{"class":"TPV","mode":%s,"lat":1,"lon":1,"speed":%s}' % (HUGE, HUGE)),
        ("ack", b'{"boot_id":"b","up_to_seq":%s}' % HUGE),
        ("change", b'{"crop":{"left":%s}}' % HUGE),
        ("vehicle", b"rate = %s" % LONG),
        ("vehicle", b"rate = 0x" + b"f" * 10_000),
        ("vehicle", b"vehicle = 0x" + b"f" * 10_000),
        ("vehicle", b"regions = " + b"[" * 5000 + b"]" * 5000),
        ("vehicle", b"source" + b".a" * 20_000 + b" = 1"),
        ("vehicle", b'bundle = "\\u0000"'),
        ("vehicle", b'outputs = [{path = "a\\u0000b"}]'),
        ("change", b'{"region": "road\\u0000", "crop": {}}'),
    ],
)
def test_a_number_or_a_nest_that_nothing_can_hold_is_refused(reader: str, content: bytes) -> None:
    with pytest.raises(EdgeRoadError):
        READERS[reader](content)


@pytest.mark.parametrize("reader", sorted(READERS))
@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 50_000, LONG, b"", b"\x00", b"null", b"[]"])
def test_no_reader_trips_over_what_is_deep_long_or_empty(reader: str, content: bytes) -> None:
    if reader == "vehicle" and not content:
        return  # an empty vehicle file is the default vehicle
    with pytest.raises(EdgeRoadError):
        READERS[reader](content)


def test_an_override_that_nothing_can_hold_is_refused() -> None:
    for text in ("rate=" + "9" * 5000, "regions=" + "[" * 5000):
        with pytest.raises(EdgeRoadError):
            load_settings(Vehicle, None, [text])
