"""INT8 with float16 between its layers gives the same answers on every ONNX Runtime that we allow."""

from __future__ import annotations

import numpy as np
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.export.calibration import sample_activations
from edge_road.export.half import to_float16
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
from edge_road.export.target import CalibrationSettings
from edge_road.frames import Floats


def logits_of(content: bytes) -> Floats:
    predictor = OnnxPredictor(content, ROAD_CLASSES, SIZE, name="tiny")
    return predictor.predict(noise_images(12, seed=3)).logits_NC


def test_float16_between_int8_layers_keeps_the_int8_answers() -> None:
    """ONNX Runtime below 1.30 truncates float16 on its way to INT8: a road model was a third off."""
    content = conv_bytes()
    activations = sample_activations(content, quantized_tensors(content), noise_images(8))
    layers = int8_layers(content, activations, CalibrationSettings())
    whole = quantize(content, layers, layers.keys())
    mixed = to_float16(whole, {})
    assert check_onnx(mixed).opset == 19
    expected_NC = logits_of(whole)
    difference_NC = np.abs(logits_of(mixed) - expected_NC)
    assert difference_NC.max() < 0.02 * np.abs(expected_NC).max()
