"""A candidate that dies, hangs or babbles is refused, and the worker does not even stumble."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.errors import BundleError
from edge_road.frames import Frame
from edge_road.runtime import trial as trial_module
from edge_road.runtime.candidate import Question
from edge_road.runtime.evidence import Evidence, Failed, Loaded, Record, RegionEvidence
from edge_road.runtime.trial import Trial
from edge_road.runtime.vehicle import Vehicle

LOADED = Loaded(predictor="onnx", model_digest="digest", confidence_threshold=0.6)
FRAME = Frame(np.arange(12 * 16 * 3, dtype=np.uint8).reshape(12, 16, 3), 7, 99)
VEHICLE = Vehicle.model_validate(
    {"bundle": Path("new"), "swap": {"canary_s": 1.0, "least_frames": 2, "longest_s": 5.0}}
)


def evidence(*probabilities: float) -> Evidence:
    region = RegionEvidence(name="road", probabilities=probabilities)  # type: ignore[arg-type]
    return Evidence(number=7, captured_mono_ns=99, regions=(region,), stage_ms={"predict": 2.0})


DRY, WET = evidence(0.9, 0.1, 0.0), evidence(0.1, 0.9, 0.0)


class Stage:
    """The candidate's end of the wire, played by the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ScriptedClock()

        def spawn(module: str, descriptors: list[int]) -> subprocess.Popen[bytes]:
            self._mouth, self.memory = (os.dup(descriptor) for descriptor in descriptors)
            return subprocess.Popen(["sleep", "60"])

        monkeypatch.setattr(trial_module, "spawn", spawn)
        self.trial = Trial(VEHICLE, 0.6, 0.05, self.clock)
        os.read(self._mouth, 10**6)  # the setup

    def says(self, record: Record | bytes) -> Any:
        os.write(self._mouth, record if isinstance(record, bytes) else record.model_dump_json().encode())
        return self.trial.look()

    def hears(self) -> Question:
        return Question.model_validate_json(os.read(self._mouth, 10**6))

    def asked_and_answers(self, live: Evidence, answer: Evidence) -> Any:
        self.clock.sleep(0.2)
        self.trial.offer(FRAME, live)
        self.hears()
        return self.says(answer)

    def dies(self) -> None:
        os.close(self._mouth)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    stage = Stage(monkeypatch)
    yield stage
    stage.trial.close()


def test_a_process_that_cannot_be_had_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str, descriptors: list[int]) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(trial_module, "spawn", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError):
        Trial(VEHICLE, 0.6, 0.05)
    assert os.listdir("/proc/self/fd") == before


def test_a_frame_crosses_over_as_it_is(stage: Stage) -> None:
    assert stage.says(LOADED).stage == "canary"
    stage.clock.sleep(0.2)
    stage.trial.offer(FRAME, DRY)
    question = stage.hears()
    assert (question.height, question.width, question.number) == (12, 16, 7)
    assert os.pread(stage.memory, 12 * 16 * 3, 0) == FRAME.pixels.tobytes()


def test_one_question_at_a_time_and_none_of_spoilt_frames(stage: Stage) -> None:
    stage.clock.sleep(0.2)
    stage.trial.offer(FRAME, DRY)  # before it is loaded
    stage.says(LOADED)
    stage.trial.offer(FRAME, DRY.model_copy(update={"problems": ("frozen",)}))
    stage.trial.offer(FRAME, DRY)
    stage.clock.sleep(0.2)
    stage.trial.offer(FRAME, DRY)
    assert stage.hears()
    os.set_blocking(stage._mouth, False)
    with pytest.raises(BlockingIOError):
        stage.hears()


def test_agreement_passes(stage: Stage) -> None:
    stage.says(LOADED)
    for _ in range(6):
        assert stage.asked_and_answers(DRY, DRY) is None
    assert stage.trial.passed
    assert stage.trial.figures["frames"] == 6


def test_disagreement_is_refused_with_its_figures(stage: Stage) -> None:
    stage.says(LOADED)
    steps = [stage.asked_and_answers(DRY, WET) for _ in range(6)]
    refused = next(step for step in steps if step is not None)
    assert (refused.stage, refused.reason, refused.figures["agreement"]) == ("refused", "disagrees", 0.0)


def test_a_bundle_that_cannot_be_loaded_says_why(stage: Stage) -> None:
    refused = stage.says(Failed.because(BundleError("the bundle is not signed", where="new")))
    assert (refused.stage, refused.reason) == ("refused", "the bundle is not signed; new")


@pytest.mark.parametrize("loaded", [False, True])
def test_a_candidate_that_dies_is_refused(stage: Stage, loaded: bool) -> None:
    if loaded:
        stage.says(LOADED)
    stage.dies()
    stage.clock.sleep(0.2)
    stage.trial.offer(FRAME, DRY)
    refused = stage.trial.look()
    assert refused is not None
    assert refused.reason == "candidate_died"


@pytest.mark.parametrize("record", [b"{}", b"\xff", b'{"kind":"evidence"}'])
def test_a_candidate_that_babbles_is_refused(stage: Stage, record: bytes) -> None:
    assert stage.says(record).reason == "candidate_talks_nonsense"


def test_a_candidate_that_hangs_is_refused(stage: Stage) -> None:
    assert stage.trial.look() is None
    stage.clock.sleep(VEHICLE.worker.ready_s + 1)
    refused = stage.trial.look()
    assert refused is not None
    assert refused.reason == "candidate_not_ready"
    stage.says(LOADED)
    stage.trial.offer(FRAME, DRY)
    stage.clock.sleep(VEHICLE.worker.ready_s + 1)
    hangs = stage.trial.look()
    assert hangs is not None
    assert hangs.reason == "candidate_hangs"
