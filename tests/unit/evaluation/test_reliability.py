"""Calibration: ECE against a public implementation, temperature on pictures it was not fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.evaluation import plots
from edge_road.evaluation.metrics import softmax
from edge_road.evaluation.reliability import (
    HALVES,
    Bin,
    Reliability,
    calibration_at,
    calibration_by_halves,
    reliability,
)


def overconfident(count: int, seed: int = 0, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Logits four times as large as the odds of their labels."""
    draw = np.random.default_rng(seed)
    true_NC = draw.normal(0, 1.5, (count, classes))
    labels_N = np.array([draw.choice(classes, p=p) for p in softmax(true_NC)])
    return (4 * true_NC).astype(np.float32), labels_N


@pytest.mark.parametrize("classes", [2, 3, 27])
def test_calibration_error_equals_torchmetrics(classes: int) -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    logits_NC, labels_N = overconfident(500, seed=classes, classes=classes)
    probabilities_NC = softmax(logits_NC.astype(np.float64) / 3)
    theirs = functional.multiclass_calibration_error(
        torch.from_numpy(probabilities_NC), torch.from_numpy(labels_N), num_classes=classes, n_bins=15
    )
    right_N = probabilities_NC.argmax(axis=1) == labels_N
    ours = reliability(probabilities_NC.max(axis=1), right_N)
    assert ours.calibration_error == pytest.approx(float(theirs), abs=1e-6)


def test_bins_hold_every_answer_once_and_their_means() -> None:
    confidence_N = np.array([0.34, 0.35, 0.9, 1.0, 1.0])
    result = reliability(confidence_N, np.array([True, False, True, True, False]))
    assert sum(b.answers for b in result.bins) == 5
    assert result.bins[5].confidence == pytest.approx(0.345)
    assert result.bins[5].accuracy == 0.5
    assert result.bins[14].answers == 2
    assert result.bins[0].confidence is None
    assert result.bins[0].accuracy is None


def test_a_temperature_fitted_on_one_half_lowers_the_error_on_the_other() -> None:
    logits_NC, labels_N = overconfident(2000)
    result = calibration_by_halves(logits_NC, labels_N, np.random.default_rng(0))
    assert result is not None
    assert result.fitted_on == HALVES
    assert result.answers == 1000
    assert result.temperature == pytest.approx(4, rel=0.2)
    assert result.after.calibration_error < 0.5 * result.before.calibration_error


def test_the_two_halves_share_no_picture() -> None:
    """Other labels of the judged half change its figures, but not the temperature."""
    logits_NC, labels_N = overconfident(41, seed=3)
    judged_M = np.random.default_rng(0).permutation(41)[20:]
    others_N = labels_N.copy()
    others_N[judged_M] = (labels_N[judged_M] + 1) % 3
    one, other = (calibration_by_halves(logits_NC, y, np.random.default_rng(0)) for y in (labels_N, others_N))
    assert one is not None
    assert other is not None
    assert one.answers == other.answers == 21
    assert one.temperature == other.temperature
    assert one.after.calibration_error != other.after.calibration_error


def test_outputs_that_are_not_finite_are_left_out_and_none_at_all_gives_nothing() -> None:
    logits_NC, labels_N = overconfident(20)
    logits_NC[4] = np.nan
    result = calibration_at(logits_NC, labels_N, 2.0, "validation")
    assert result is not None
    assert result.answers == 19
    assert calibration_at(np.full((4, 3), np.inf), np.zeros(4, np.int64), 1.0, "validation") is None


def test_no_line_leads_to_a_point_of_a_few_answers() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    counts = (10, 0, 1, 30, 2)
    bins = tuple(
        Bin(answers=n, confidence=i / 10 if n else None, accuracy=i % 2 if n else None)
        for i, n in enumerate(counts)
    )
    plots._reliability_line(axes, Reliability(calibration_error=0.1, bins=bins), "as trained", "#4477aa")
    (line,) = axes.lines
    assert line.get_xdata().tolist() == [0.0, 30.0]
    shown = [(mark.get_offsets()[0][0], mark.get_alpha() > 0.5) for mark in axes.collections]
    assert shown == [(0.0, True), (20.0, False), (30.0, True), (40.0, False)]
