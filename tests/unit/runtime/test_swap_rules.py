"""A new model passes when it says what the old one says, in numbers, in time."""

from __future__ import annotations

import math

import pytest

from edge_road.runtime.decision import DecisionSettings
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.swap_rules import Canary, Probation, SwapSettings, said, usual_ms

SETTINGS = SwapSettings(canary_s=10, least_frames=4, longest_s=30, least_agreement=0.75)
RULES = DecisionSettings()


def evidence(*probabilities: float, distance: float = 0.0, predict_ms: float = 1.0) -> Evidence:
    region = RegionEvidence(name="road", probabilities=probabilities, distance=distance)  # type: ignore[arg-type]
    return Evidence(number=0, captured_mono_ns=0, regions=(region,), stage_ms={"predict": predict_ms})


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (evidence(0.9, 0.1, 0.0), "dry"),
        (evidence(0.0, 0.1, 0.9), "icy"),
        (evidence(0.5, 0.4, 0.1), "unknown"),
        (evidence(0.9, 0.1, 0.0, distance=2.0), "unknown"),
        (evidence(0.9, 0.1, 0.0, distance=math.nan), "unknown"),
        (evidence(math.nan, 0.1, 0.0), "model_output"),
        (evidence(0.9, 0.9, 0.9), "model_output"),
        (Evidence(number=0, captured_mono_ns=0), "model_output"),
    ],
)
def test_what_one_frame_says(frame: Evidence, expected: str) -> None:
    assert said(frame, 0.6, RULES) == expected


def canary(*pairs: tuple[str, str], live_ms: float = 2.0, candidate_ms: float = 3.0) -> Canary:
    result = Canary(SETTINGS, period_s=0.05)
    for live, candidate in pairs:
        result.add(live, candidate, live_ms, candidate_ms)
    return result


DRY = ("dry", "dry")


@pytest.mark.parametrize(
    ("pairs", "elapsed_s", "verdict"),
    [
        ([DRY] * 4, 9.9, None),
        ([DRY] * 4, 10.0, ""),
        ([DRY] * 3, 29.9, None),
        ([DRY] * 3, 30.0, "too_few_frames"),
        ([DRY] * 3 + [("dry", "wet")], 10.0, ""),
        ([DRY] * 2 + [("dry", "wet")] * 2, 10.0, "disagrees"),
        ([DRY] * 2 + [("dry", "unknown")] * 2, 10.0, "disagrees"),
        ([("unknown", "wet")] * 4, 10.0, ""),
        ([DRY, ("dry", "model_output")], 0.1, "model_output"),
        ([("unknown", "model_output")], 0.1, "model_output"),
    ],
)
def test_the_canary_decides_when_it_has_seen_enough(
    pairs: list[tuple[str, str]], elapsed_s: float, verdict: str | None
) -> None:
    assert canary(*pairs).verdict(elapsed_s) == verdict


@pytest.mark.parametrize(
    ("live_ms", "candidate_ms", "verdict"),
    [(2.0, 50.0, ""), (2.0, 51.0, "too_slow"), (60.0, 90.0, ""), (60.0, 91.0, "too_slow")],
)
def test_a_candidate_may_take_as_long_as_a_frame_lasts(
    live_ms: float, candidate_ms: float, verdict: str
) -> None:
    assert canary(*[DRY] * 4, live_ms=live_ms, candidate_ms=candidate_ms).verdict(10.0) == verdict


def test_late_answers_of_a_busy_machine_do_not_count() -> None:
    assert usual_ms([900.0, 3.0, 3.0, 900.0]) == 3.0


def test_the_figures_tell_what_was_compared() -> None:
    assert canary().figures() == {"frames": 0}
    figures = canary(DRY, ("dry", "wet")).figures()
    assert figures == {
        "frames": 2, "agreement": 0.5, "live_ms": 2.0, "candidate_ms": 3.0, "slowest_ms": 50.0,
    }  # fmt: skip


def test_probation_bears_two_sick_answers_and_no_third() -> None:
    probation = Probation(until_ns=0, slowest_ms=50.0)
    sick = evidence(math.nan, 0.0, 0.0)
    verdicts = [probation.misbehaves(frame, RULES) for frame in (sick, evidence(0.9, 0.1, 0.0), sick, sick)]
    assert verdicts == [None, None, None, "model_output"]


def test_probation_does_not_count_what_the_camera_did() -> None:
    probation = Probation(until_ns=0, slowest_ms=50.0)
    black = Evidence(number=0, captured_mono_ns=0, problems=("exposure",))
    assert [probation.misbehaves(black, RULES) for _ in range(5)] == [None] * 5


def test_a_model_that_is_slow_all_the_time_has_to_go() -> None:
    probation = Probation(until_ns=0, slowest_ms=50.0)
    slow = evidence(0.9, 0.1, 0.0, predict_ms=60.0)
    verdicts = [probation.misbehaves(slow, RULES) for _ in range(20)]
    assert verdicts == [None] * 19 + ["too_slow"]
