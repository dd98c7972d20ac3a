from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from edge_road.errors import EdgeRoadError
from edge_road.road_state import RoadState, parse_message

DRY = {
    "vehicle": "van-1",
    "boot_id": "b",
    "seq": 3,
    "state": "dry",
    "probabilities": {"dry": 0.9, "wet": 0.07, "icy": 0.03},
    "published_mono_ns": 4_500_010,
    "captured_mono_ns": 10,
    "captured_utc": None,
    "clock_synced": False,
    "age_ms": 4.5,
    "valid_for_ms": 1000,
    "model_digest": "m",
    "config_digest": "c",
    "version": "0.1.0",
}


def test_a_message_survives_the_wire() -> None:
    state = RoadState.model_validate(DRY)
    line = state.to_json()
    assert "\n" not in line
    assert json.loads(line)["schema"] == "edge_road.state/1"
    assert parse_message(line) == state


@given(st.data())
def test_a_damaged_message_never_parses(data) -> None:  # type: ignore[no-untyped-def]
    line = bytearray(RoadState.model_validate(DRY).to_json().encode())
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(EdgeRoadError):
        parse_message(bytes(line))


@pytest.mark.parametrize(
    "change",
    [
        {"state": "dry", "captured_mono_ns": None},
        {"state": "dry", "probabilities": {}},
        {"state": "unknown", "reasons": []},
        {"probabilities": {"dry": float("nan"), "wet": 0.5, "icy": 0.5}},
        {"age_ms": float("inf")},
        {"state": "slippery"},
        {"extra": 1},
    ],
)
def test_a_state_without_evidence_cannot_be_built(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RoadState.model_validate({**DRY, **change})
