"""Faults on purpose: said clearly, refused in production."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edge_road.backends.fake import FakePredictor
from edge_road.clock import ScriptedClock
from edge_road.errors import CameraError, ConfigError
from edge_road.frames import Frame
from edge_road.runtime.injected_faults import FaultyCamera, FaultyPredictor
from edge_road.runtime.rehearsal import (
    NO_REHEARSAL,
    PLACES,
    VARIABLE,
    Rehearsal,
    refuse_in_production,
    rehearsal_from,
)
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.sources.pattern import PatternCamera
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_sources import PatternSource

SECOND = 10**9


def armed(text: str, **vehicle: object) -> Rehearsal:
    return rehearsal_from({VARIABLE: text}, Vehicle.model_validate(vehicle), 0)


def test_without_the_variable_nothing_happens() -> None:
    assert rehearsal_from({}, Vehicle(), 0) is NO_REHEARSAL
    assert not NO_REHEARSAL.active("camera.black", 10**12)


def test_faults_have_their_time() -> None:
    rehearsal = armed("worker.hang@30, camera.freeze@10-20.5")
    assert [str(fault) for fault in rehearsal.faults] == ["worker.hang@30-35", "camera.freeze@10-20.5"]
    seen = [rehearsal.first_active("camera", n * SECOND) for n in (9, 10, 20, 21)]
    assert seen == [None, "freeze", "freeze", None]


def test_a_worker_that_starts_later_does_not_crash_again() -> None:
    rehearsal = armed("worker.crash@3,camera.black@3")
    assert len(rehearsal.still_to_come(3 * SECOND).faults) == 2
    assert [f.place for f in rehearsal.still_to_come(3 * SECOND + 1).faults] == ["camera.black"]


def test_production_refuses_them() -> None:
    with pytest.raises(ConfigError, match="not injected in production"):
        armed("camera.black@1", production=True)


CAMERA = {"kind": "csi"}


@pytest.mark.parametrize(
    ("rehearsal", "told"),
    [
        ({}, "source.kind = synthetic"),
        ({"source": {"kind": "pattern"}}, "source.kind = pattern"),
        ({"source": {**CAMERA, "pipeline": "test"}}, "source.pipeline = test"),
        ({"source": CAMERA, "backend": "fake"}, "backend = fake"),
        ({"source": CAMERA, "speed": 0.1}, "speed = 0.1"),
    ],
)
def test_production_lets_no_rehearsal_through(rehearsal: dict[str, Any], told: str) -> None:
    refuse_in_production(Vehicle.model_validate(rehearsal), "van.toml")
    with pytest.raises(ConfigError, match="not let through in production") as refused:
        refuse_in_production(Vehicle.model_validate({**rehearsal, "production": True}), "van.toml")
    assert refused.value.details["got"] == told


def test_production_drives_with_a_camera_and_a_model() -> None:
    refuse_in_production(Vehicle.model_validate({"source": CAMERA, "production": True}), "van.toml")


@pytest.mark.parametrize(
    "text", ["camera.black", "camera.blak@1", "camera.black@x", "camera.black@5-5", "camera.black@nan",
             "camera.black@1;worker.hang@2", ",", "camera.black@1-", "a" * 5000,
             ",".join(["camera.black@1"] * 33)],
)  # fmt: skip
def test_what_is_no_fault_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        armed(text)


def test_a_mistyped_place_gets_a_hint() -> None:
    with pytest.raises(ConfigError) as refused:
        armed("camera.frezze@1")
    assert "camera.freeze" in refused.value.details["to do"]


def camera(text: str) -> tuple[FaultyCamera, ScriptedClock]:
    clock = ScriptedClock()
    source = FaultyCamera(PatternCamera(PatternSource(kind="pattern"), clock), armed(text), clock)
    source.open()
    return source, clock


def picture(source: FaultyCamera, clock: ScriptedClock) -> Frame | Unreadable | None:
    return source.read(clock.mono_ns() + SECOND)


@pytest.mark.parametrize(("fault", "level"), [("black", 0), ("white", 255)])
def test_a_picture_of_one_colour(fault: str, level: int) -> None:
    source, clock = camera(f"camera.{fault}@0")
    frame = picture(source, clock)
    assert isinstance(frame, Frame)
    assert (frame.pixels == level).all()


def test_a_frozen_picture_keeps_its_bytes_and_not_its_time() -> None:
    source, clock = camera("camera.freeze@0-0.2")
    frames = [picture(source, clock) for _ in range(3)]
    assert all(isinstance(frame, Frame) for frame in frames)
    assert len({frame.pixels.tobytes() for frame in frames if isinstance(frame, Frame)}) == 1
    assert len({frame.captured_mono_ns for frame in frames if frame is not None}) == 3
    clock.sleep(0.2)
    fresh = picture(source, clock)
    assert isinstance(fresh, Frame)
    assert not np.array_equal(fresh.pixels, frames[0].pixels)  # type: ignore[union-attr]


def test_silence_damage_and_loss() -> None:
    assert picture(*camera("camera.silence@0")) is None
    source, clock = camera("camera.decode@0")
    assert isinstance(picture(source, clock), Unreadable)
    assert source.rejected == 1
    source, clock = camera("camera.error@0.1")
    clock.sleep(0.1)
    for call in (source.open, lambda: picture(source, clock)):
        with pytest.raises(CameraError, match="the camera is gone"):
            call()


def test_a_call_that_hangs_comes_back_when_the_fault_ends() -> None:
    source, clock = camera("camera.hang@0-7")
    picture(source, clock)
    assert clock.mono_ns() >= 7 * SECOND


def test_a_model_without_numbers_and_a_slow_one() -> None:
    clock = ScriptedClock()
    images_NHWC = np.full((1, 32, 32, 3), 60, np.uint8)
    sick = FaultyPredictor(FakePredictor(), armed("model.nan@0-1,model.slow@1-2"), clock)
    assert not sick.predict(images_NHWC).finite_N.any()
    clock.sleep(1)
    assert sick.predict(images_NHWC).finite_N.all()
    assert clock.mono_ns() == 1.5 * SECOND
    assert sick.name == "fake (rehearsal)"


def test_every_place_says_what_it_does() -> None:
    assert all(text and place.count(".") == 1 for place, text in PLACES.items())
