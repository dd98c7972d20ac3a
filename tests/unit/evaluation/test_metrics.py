"""Every metric against a slow, obvious loop or a case worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES, RSCD_CLASSES, ClassList
from edge_road.evaluation import metrics
from edge_road.frames import Prediction


def random_case(seed: int, images: int = 200, classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, classes, images), rng.integers(-1, classes, images)


def prediction_of(probabilities: list[list[float]]) -> Prediction:
    probabilities_NC = np.array(probabilities, np.float32)
    with np.errstate(divide="ignore"):
        logits_NC = np.maximum(np.log(probabilities_NC), -100)
    return Prediction(probabilities_NC, logits_NC, np.zeros((len(probabilities), 2), np.float32))


@pytest.mark.parametrize("seed", range(5))
def test_confusion_recall_and_f1_equal_a_slow_loop(seed: int) -> None:
    labels_N, said_N = random_case(seed)
    table = [[0] * 6 for _ in range(5)]
    for label, answer in zip(labels_N.tolist(), said_N.tolist()):
        table[label][5 if answer == -1 else answer] += 1
    confusion = metrics.confusion(labels_N, said_N, 5)
    assert confusion.tolist() == table

    f1 = []
    for c in range(5):
        hits = sum(label == said == c for label, said in zip(labels_N, said_N))
        precision = hits / sum(said == c for said in said_N)
        recall = hits / sum(label == c for label in labels_N)
        assert metrics.recalls(confusion)[c] == pytest.approx(recall)
        f1.append(2 * precision * recall / (precision + recall))
    assert metrics.macro_f1(confusion) == pytest.approx(sum(f1) / 5)
    assert metrics.accuracy(labels_N, said_N) == pytest.approx(sum(labels_N == said_N) / 200)


def test_a_class_without_pictures_has_no_recall_and_does_not_move_f1() -> None:
    labels_N, said_N = np.array([0, 0, 1]), np.array([0, 2, 1])
    confusion = metrics.confusion(labels_N, said_N, 4)
    assert metrics.recalls(confusion) == [0.5, 1.0, None, None]
    assert metrics.macro_f1(confusion) == pytest.approx((2 / 3 + 1.0) / 2)


def test_an_output_that_is_not_finite_is_no_answer_not_class_zero() -> None:
    """The arg-max of NaN is 0: a broken model would say dry."""
    for broken in (math.nan, math.inf):
        prediction = prediction_of([[0.8, 0.1, 0.1], [broken, 0.5, 0.5]])
        assert metrics.said(prediction).tolist() == [0, metrics.NO_ANSWER]
        assert metrics.said_states(prediction, ROAD_CLASSES).tolist() == [0, metrics.NO_ANSWER]
        assert metrics.accuracy(np.array([0, 0]), metrics.said(prediction)) == 0.5


def test_states_come_from_sums_not_from_the_most_probable_class() -> None:
    classes = ClassList(("dry", "ice", "fresh_snow"))
    prediction = prediction_of([[0.4, 0.3, 0.3]])
    assert metrics.said(prediction).tolist() == [0]
    assert metrics.said_states(prediction, classes).tolist() == [2]


def test_ice_that_was_not_called_icy_is_missed_no_answer_included() -> None:
    true_N = np.array([2, 2, 2, 2, 0, 1])
    said_N = np.array([2, 0, 1, metrics.NO_ANSWER, 0, 2])
    assert metrics.missed_ice(true_N, said_N).tolist() == [False, True, True, True, False, False]


def test_true_states_of_the_27_classes() -> None:
    classes = ClassList(RSCD_CLASSES)
    labels_N = np.arange(27)
    assert np.bincount(metrics.true_states(labels_N, classes)).tolist() == [8, 16, 3]


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (1, 100, 0.0018, 0.0545)],
)
def test_wilson_interval_of_published_cases(hits: int, trials: int, low: float, high: float) -> None:
    assert metrics.wilson_interval(hits, trials) == pytest.approx((low, high), abs=2e-4)


def test_danger_rate_needs_ice() -> None:
    assert metrics.danger_rate(0, 0) is None
    danger = metrics.danger_rate(2, 40)
    assert danger is not None
    assert danger.rate == 0.05
    assert danger.low < 0.05 < danger.high
    assert danger.icy == 40


def test_calibration_error_equals_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    probabilities_NC = rng.dirichlet([1, 1, 1], 300)
    labels_N = rng.integers(0, 3, 300)
    expected = 0.0
    for k in range(15):
        confidences, hits = [], []
        for row, label in zip(probabilities_NC.astype(np.float32).astype(float), labels_N):
            if k / 15 < row.max() <= (k + 1) / 15:
                confidences.append(row.max())
                hits.append(row.argmax() == label)
        if hits:
            expected += len(hits) / 300 * abs(np.mean(confidences) - np.mean(hits))
    measured = metrics.calibration_error(prediction_of(probabilities_NC.tolist()), labels_N)
    assert measured == pytest.approx(expected, abs=1e-9)


def test_calibration_error_of_extremes() -> None:
    certain = prediction_of([[1.0, 0.0]] * 4)
    assert metrics.calibration_error(certain, np.array([0, 0, 0, 0])) == 0.0
    assert metrics.calibration_error(certain, np.array([0, 0, 1, 1])) == 0.5
    one_bin = prediction_of([[1.0, 0.0], [0.96, 0.04]])
    assert metrics.calibration_error(one_bin, np.array([1, 0])) == pytest.approx((1.0 + 0.96 - 1) / 2)
    assert metrics.calibration_error(prediction_of([[math.nan, 0.0]]), np.array([0])) is None


def negative_log_likelihood(logits_NC: np.ndarray, labels_N: np.ndarray, temperature: float) -> float:
    z_NC = logits_NC / temperature
    log_sum_N = np.log(np.exp(z_NC - z_NC.max(1, keepdims=True)).sum(1)) + z_NC.max(1)
    return float((log_sum_N - z_NC[np.arange(len(labels_N)), labels_N]).mean())


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
def test_temperature_undoes_a_known_overconfidence(sharpness: float) -> None:
    rng = np.random.default_rng(0)
    honest_NC = rng.normal(0, 1.5, (20_000, 4))
    powers_NC = np.exp(honest_NC)
    probabilities_NC = powers_NC / powers_NC.sum(1, keepdims=True)
    labels_N = np.array([rng.choice(4, p=row) for row in probabilities_NC[:4000]])
    logits_NC = (honest_NC[:4000] * sharpness).astype(np.float32)
    fitted = metrics.fit_temperature(logits_NC, labels_N)
    assert fitted == pytest.approx(sharpness, rel=0.1)
    grid = np.geomspace(0.1, 10, 400)
    best = grid[np.argmin([negative_log_likelihood(logits_NC, labels_N, t) for t in grid])]
    assert fitted == pytest.approx(best, rel=0.03)


def test_temperature_of_a_fault_free_set_stays_finite_and_of_an_empty_one_is_one() -> None:
    logits_NC = np.array([[4.0, 0.0], [0.0, 4.0]] * 50)
    fitted = metrics.fit_temperature(logits_NC, np.array([0, 1] * 50))
    assert 0.5 < fitted < 1.5  # Platt's targets: confidence 1 - 1/102, and softmax(4/T) is near it
    assert metrics.fit_temperature(np.full((3, 2), np.nan), np.array([0, 1, 0])) == 1.0
