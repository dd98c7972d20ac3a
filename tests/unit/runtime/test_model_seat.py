"""Which model judges, and what a change of models does to the memory of the camera."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np

from edge_road.frames import Frame
from edge_road.runtime.evidence import SwapStep
from edge_road.runtime.link import Order
from edge_road.runtime.model import load_model
from edge_road.runtime.model_seat import Loading, ModelSeat
from edge_road.runtime.quality import TIMESTAMP
from edge_road.runtime.vehicle import Vehicle

VEHICLE = Vehicle(backend="fake")


def problems(seat: ModelSeat, seconds: float) -> tuple[str, ...]:
    """Of a picture that was taken then."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    return seat.now.perception.view(Frame(pixels, 0, round(seconds * 1e9))).verdict.problems


def test_the_model_that_takes_over_and_the_one_that_returns_know_what_was_seen_meanwhile() -> None:
    steps: list[SwapStep] = []
    seat = ModelSeat(VEHICLE, load_model(VEHICLE), steps.append)
    problems(seat, 1.0)
    loaded = SimpleNamespace(model=load_model(VEHICLE), vehicle=VEHICLE, figures={}, over=True)
    seat._loading = cast(Loading, loaded)
    seat.turn()
    assert TIMESTAMP in problems(seat, 1.0)
    problems(seat, 60.0)
    seat.obey(Order(what="back"), period_s=0.1)
    assert TIMESTAMP in problems(seat, 60.0)
    assert [step.stage for step in steps] == ["swapped", "rolled_back"]
