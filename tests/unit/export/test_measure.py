"""Centroids, radii, thresholds and parity."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES, ClassList
from edge_road.export import measure
from edge_road.export.measure import THRESHOLDS, class_geometry, compare, lowest_threshold
from edge_road.frames import Prediction


def test_radius_holds_99_percent_of_a_class() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
    labels_N = np.repeat(np.arange(3), 500)
    features_ND = (centres[labels_N] + rng.normal(0, [[0.5]], (1500, 2))).astype(np.float32)
    centroids_CD, radii_C = class_geometry(features_ND, labels_N, ROAD_CLASSES)
    np.testing.assert_allclose(centroids_CD, centres, atol=0.1)
    for label in range(3):
        distances = np.linalg.norm(features_ND[labels_N == label] - centroids_CD[label], axis=1)
        assert (distances <= radii_C[label]).mean() == pytest.approx(0.99, abs=0.003)


def test_the_threshold_is_the_lowest_that_makes_answers_right() -> None:
    confidence_N = np.linspace(0.4, 1.0, 601, dtype=np.float32)
    assert lowest_threshold(confidence_N, confidence_N > 0.6, wanted=1.0) == pytest.approx(0.62)
    assert lowest_threshold(confidence_N, np.ones(601, bool), wanted=0.99) == THRESHOLDS[0]
    assert lowest_threshold(confidence_N, np.zeros(601, bool), wanted=0.99) == THRESHOLDS[-1]


def test_a_model_agrees_with_itself_and_not_with_another() -> None:
    one, other = (OnnxPredictor(conv_bytes(seed=seed), ROAD_CLASSES, SIZE, name=str(seed)) for seed in (0, 5))
    images_NHWC = noise_images(20)
    assert compare(one, one, images_NHWC).logit_difference == 0.0
    parity = compare(one, other, images_NHWC)
    assert parity.logit_difference > 0.1
    assert parity.agreement == 1 - parity.differing / 20


def test_models_agree_when_they_would_publish_the_same_state() -> None:
    """Two kinds of dry road: a vehicle says dry of both."""
    classes = ClassList(("dry-asphalt-smooth", "dry-asphalt-slight", "wet-mud", "ice"))
    rows_NC = np.array([[0.6, 0.3, 0.1, 0.0], [0.3, 0.6, 0.1, 0.0], [0.1, 0.1, 0.2, 0.6]], np.float32)
    prediction = Prediction(rows_NC, rows_NC, rows_NC)
    answers = measure._answers((prediction, classes), np.array([0, 0, 3]))
    assert answers.published_RN.tolist() == [[0, 0, 2]]
    assert answers.right_RN.tolist() == [[True, False, True]]
