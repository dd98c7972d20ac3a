"""Several artefacts on the same pictures: differences, families, and what a reader is warned of."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.evaluation.comparison import compare_with_first
from edge_road.evaluation.judge import Judged, sum_up
from edge_road.evaluation.notes import notes_of
from edge_road.evaluation.scores import Evaluation
from edge_road.frames import Prediction

LABELS_N = np.arange(60) % 3


def prediction(said_N: np.ndarray) -> Prediction:
    logits_NC = (4.0 * np.eye(3)[said_N]).astype(np.float32)
    powers_NC = np.exp(logits_NC)
    return Prediction(powers_NC / powers_NC.sum(axis=1, keepdims=True), logits_NC, logits_NC)


def wrong_on(positions: slice) -> Prediction:
    said_N = LABELS_N.copy()
    said_N[positions] = (said_N[positions] + 1) % 3
    return prediction(said_N)


def judged(**conditions: list[Prediction]) -> Judged:
    answers = {name.replace("__", ":"): predictions for name, predictions in conditions.items()}
    return sum_up("model", ROAD_CLASSES, answers, LABELS_N, runs=2, seed=0)


def test_differences_are_of_means_over_runs_and_signed() -> None:
    base = judged(clean=[wrong_on(slice(0, 0))], dark=[wrong_on(slice(0, 6)), wrong_on(slice(0, 12))])
    worse = judged(clean=[wrong_on(slice(0, 3))], dark=[wrong_on(slice(0, 30))])
    (comparison,) = compare_with_first([base, worse], seed=0)
    assert comparison.entry == 1
    assert comparison.conditions["clean"].difference == pytest.approx(-3 / 60)
    dark = comparison.conditions["dark"]
    assert dark.difference == pytest.approx(9 / 60 - 30 / 60)
    assert dark.low < dark.difference < dark.high < 0
    assert dark.significant
    assert compare_with_first([base], seed=0) == ()


def test_the_danger_rate_is_compared_on_the_icy_pictures_alone() -> None:
    """Icy pictures 2, 5, ... 29: half of the 20 are missed, and called dry."""
    base, worse = judged(clean=[wrong_on(slice(0, 0))]), judged(clean=[wrong_on(slice(0, 30))])
    (comparison,) = compare_with_first([base, worse], seed=0)
    danger = comparison.danger["clean"]
    assert danger.difference == pytest.approx(0.5)
    assert danger.significant
    assert len(worse.missed["clean"]) == 20


def test_a_condition_that_one_of_them_lacks_is_left_out() -> None:
    base = judged(clean=[wrong_on(slice(0, 0))], dark=[wrong_on(slice(0, 6))])
    other = judged(clean=[wrong_on(slice(0, 0))], jpeg=[wrong_on(slice(0, 6))])
    (comparison,) = compare_with_first([base, other], seed=0)
    assert list(comparison.conditions) == ["clean"]


def test_a_family_is_compared_by_the_mean_over_its_severities() -> None:
    fine, poor = wrong_on(slice(0, 0)), wrong_on(slice(0, 30))
    severities = {f"fog__{n}": [fine] for n in range(1, 6)}
    base = judged(clean=[fine], **severities)
    other = judged(clean=[fine], **{**severities, "fog__5": [poor]})
    (comparison,) = compare_with_first([base, other], seed=0)
    assert list(comparison.families) == ["fog"]
    assert comparison.families["fog"].difference == pytest.approx(-0.5 / 5)


def test_intervals_do_not_depend_on_what_else_was_measured() -> None:
    base, other = wrong_on(slice(0, 5)), wrong_on(slice(3, 20))
    few = compare_with_first([judged(clean=[base]), judged(clean=[other])], seed=4)
    many = compare_with_first(
        [judged(dark=[base], clean=[base]), judged(dark=[other], clean=[other])], seed=4
    )
    assert few[0].conditions["clean"] == many[0].conditions["clean"]


def notes(evaluation: Evaluation, as_trained: bool = True, split: str = "test") -> str:
    return "\n".join(notes_of("model", evaluation, as_trained=as_trained, split=split))


def test_a_large_complete_set_needs_no_note() -> None:
    labels_N = np.arange(300) % 3
    evaluation = sum_up("m", ROAD_CLASSES, {"clean": [prediction(labels_N)]}, labels_N, 1, 0).evaluation
    assert notes(evaluation) == ""
    assert "used in training" in notes(evaluation, split="train")
    assert "were chosen on these pictures" in notes(evaluation, split="validation")
    assert "chosen" not in notes(evaluation, split="validation", as_trained=False)
    assert "not of the data set" in notes(evaluation, as_trained=False)


def test_a_broken_model_is_named() -> None:
    broken = prediction(LABELS_N)
    broken.logits_NC[:7] = np.nan
    evaluation = judged(clean=[prediction(LABELS_N)], dark=[broken]).evaluation
    assert "model: 7 of 120 outputs are NaN or infinite" in notes(evaluation)
