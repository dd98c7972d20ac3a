"""Risk against coverage: counts by hand, a slow loop, and what ice has to do with it."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.evaluation.abstention import Abstention, abstention
from edge_road.frames import Prediction


def answers(said: list[int], confidence: list[float]) -> Prediction:
    probabilities_NC = np.array(
        [[c if k == s else (1 - c) / 2 for k in range(3)] for s, c in zip(said, confidence)], np.float32
    )
    return Prediction(probabilities_NC, np.log(probabilities_NC), probabilities_NC)


def judged(
    said: list[int], confidence: list[float], labels: list[int], threshold: float | None = None
) -> Abstention:
    result = abstention(answers(said, confidence), np.array(labels), ROAD_CLASSES, threshold)
    assert result is not None
    return result


def test_counts_of_what_is_lost_and_gained() -> None:
    """icy called dry at 0.6, wet called icy at 0.5; two right answers at 0.9 and 0.55."""
    result = judged([0, 0, 2, 1], [0.9, 0.6, 0.5, 0.55], [0, 2, 1, 1], threshold=0.58)
    chosen = result.chosen
    assert chosen is not None
    assert (chosen.coverage, chosen.risk) == (0.5, 0.5)
    assert (chosen.wrong_avoided, chosen.right_lost) == (1, 1)
    assert chosen.danger == 1.0
    stricter = judged([0, 0, 2, 1], [0.9, 0.6, 0.5, 0.55], [0, 2, 1, 1], threshold=0.7).chosen
    assert stricter is not None
    assert (stricter.danger, stricter.risk, stricter.wrong_avoided, stricter.right_lost) == (0.0, 0.0, 2, 1)


def test_the_area_is_the_mean_risk_over_all_coverages() -> None:
    draw = np.random.default_rng(0)
    said, labels = draw.integers(0, 3, 50).tolist(), draw.integers(0, 3, 50).tolist()
    confidence = (0.4 + 0.5 * draw.permutation(50) / 50).tolist()
    order = sorted(range(50), key=lambda i: -confidence[i])
    risks = [np.mean([said[i] != labels[i] for i in order[: k + 1]]) for k in range(50)]
    result = judged(said, confidence, labels)
    assert result.area == pytest.approx(np.mean(risks))
    assert [point.risk for point in result.curve] == pytest.approx(risks)


def test_confidence_that_knows_its_mistakes_has_a_smaller_area() -> None:
    labels, said = [0] * 10, [0] * 8 + [1] * 2
    knowing = judged(said, [0.9 - 0.01 * i for i in range(8)] + [0.5, 0.45], labels)
    blind = judged(said, [0.5 + 0.01 * i for i in range(8)] + [0.9, 0.95], labels)
    assert knowing.area < 0.1 * blind.area


def test_equal_confidences_are_answered_together() -> None:
    result = judged([0, 1, 2], [0.8, 0.8, 0.8], [0, 1, 1])
    assert len(result.curve) == 1
    assert result.curve[0].coverage == 1.0


def test_an_output_that_is_not_finite_is_never_answered() -> None:
    prediction = answers([0, 0, 0], [0.9, 0.8, 0.7])
    prediction.logits_NC[1] = np.nan
    result = abstention(prediction, np.array([0, 0, 1]), ROAD_CLASSES)
    assert result is not None
    assert result.curve[-1].coverage == pytest.approx(2 / 3)
    prediction.logits_NC[:] = np.nan
    assert abstention(prediction, np.array([0, 0, 1]), ROAD_CLASSES) is None


def test_without_answers_there_is_no_risk_and_without_ice_no_danger() -> None:
    chosen = judged([0, 1], [0.6, 0.7], [0, 1], threshold=0.99).chosen
    assert chosen is not None
    assert chosen.coverage == 0.0
    assert chosen.risk is None
    assert chosen.danger is None
    assert chosen.right_lost == 2


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    draw = np.random.default_rng(1)
    confidence = (0.4 + 0.59 * draw.random(1000)).tolist()
    result = judged([0] * 1000, confidence, draw.integers(0, 3, 1000).tolist())
    assert len(result.curve) == 101
    assert result.curve[-1].coverage == 1.0
