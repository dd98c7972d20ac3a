"""Golden vectors: a machine that computes something else is found out."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import PROBE_TOLERANCE, check_probe
from edge_road.bundle import Precision, Probe
from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import BackendError


@pytest.fixture(scope="module")
def predictor() -> OnnxPredictor:
    return OnnxPredictor(conv_bytes(), ROAD_CLASSES, SIZE, name="tiny")


def probe_with(logits_NC: np.ndarray, precision: Precision = "float32") -> Probe:
    return Probe(noise_images(4), np.zeros(4, np.int64), {precision: logits_NC.astype(np.float32)})


def test_its_own_outputs_pass(predictor: OnnxPredictor) -> None:
    own_NC = predictor.predict(noise_images(4)).logits_NC
    assert check_probe(predictor, probe_with(own_NC), "float32") == 0.0


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_the_tolerance_of_each_precision_is_where_it_turns(
    predictor: OnnxPredictor, precision: Precision
) -> None:
    own_NC = predictor.predict(noise_images(4)).logits_NC
    step = PROBE_TOLERANCE[precision] * max(1.0, float(np.abs(own_NC).max()))
    assert check_probe(predictor, probe_with(own_NC + 0.9 * step, precision), precision) > 0.0
    with pytest.raises(BackendError, match="own outputs"):
        check_probe(predictor, probe_with(own_NC + 1.2 * step, precision), precision)


def test_swapped_classes_are_found(predictor: OnnxPredictor) -> None:
    own_NC = predictor.predict(noise_images(4)).logits_NC
    with pytest.raises(BackendError):
        check_probe(predictor, probe_with(own_NC[:, ::-1]), "float32")


def test_nan_is_not_within_any_tolerance(predictor: OnnxPredictor) -> None:
    with pytest.raises(BackendError):
        check_probe(predictor, probe_with(np.full((4, 3), np.nan)), "int8")


def test_other_shapes_and_missing_precisions_are_named(predictor: OnnxPredictor) -> None:
    with pytest.raises(BackendError, match="own outputs"):
        check_probe(predictor, probe_with(np.zeros((4, 2))), "float32")
    with pytest.raises(BackendError, match="no outputs"):
        check_probe(predictor, probe_with(np.zeros((4, 3))), "int8")
