"""Models of other data sets (the papers' CIFAR-10) are judged without road states."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.conditions import CIFAR10_CLASSES, ClassList
from edge_road.evaluation.abstention import abstention
from edge_road.evaluation.familiarity import doubt
from edge_road.evaluation.judge import sum_up
from edge_road.frames import Prediction

CLASSES = ClassList(CIFAR10_CLASSES)
LABELS_N = np.arange(40) % 10


def prediction(wrong: int) -> Prediction:
    said_N = LABELS_N.copy()
    said_N[:wrong] = (said_N[:wrong] + 1) % 10
    logits_NC = (5.0 * np.eye(10)[said_N]).astype(np.float32)
    powers_NC = np.exp(logits_NC)
    return Prediction(powers_NC / powers_NC.sum(axis=1, keepdims=True), logits_NC, logits_NC)


def test_there_is_accuracy_but_neither_danger_nor_road_states() -> None:
    judged = sum_up("m", CLASSES, {"clean": [prediction(wrong=4)]}, LABELS_N, 1, 0)
    clean = judged.evaluation.clean
    assert clean.accuracy == pytest.approx(0.9)
    assert clean.state_accuracy is None
    assert clean.danger is None
    assert not any(mistake.missed_ice for mistake in judged.evaluation.mistakes)
    assert len(judged.missed["clean"]) == 0


def test_abstention_goes_by_the_confidence_of_the_class() -> None:
    result = abstention(prediction(wrong=4), LABELS_N, CLASSES)
    assert result is not None
    assert result.curve[-1].risk == pytest.approx(0.1)
    assert result.curve[-1].danger is None
    assert np.isfinite(doubt(prediction(0), CLASSES)).all()
