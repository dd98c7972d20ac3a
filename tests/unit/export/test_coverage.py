"""Scales that were made for other pictures show, whether they clip or waste levels."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_onnx import conv_bytes, noise_images

from edge_road.export.calibration import sample_activations
from edge_road.export.coverage import excess_noise, excess_of
from edge_road.export.half import to_float16
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
from edge_road.export.target import CalibrationSettings

VALUES = np.random.default_rng(0).normal(0, 1, (4000, 3)).astype(np.float32)


def test_the_best_scale_has_no_excess() -> None:
    assert excess_of(VALUES, 4.0 / 127) < 1.5


@pytest.mark.parametrize("scale", [0.0, 0.5 / 127, 40.0 / 127])
def test_scales_that_clip_or_waste_levels_have_much(scale: float) -> None:
    assert excess_of(VALUES, scale) > 10


def test_a_tensor_that_is_always_zero_speaks_against_no_scale() -> None:
    assert excess_of(np.zeros((8, 2), np.float32), 0.1) == 1.0


def test_a_float_model_has_no_scales_to_judge() -> None:
    assert excess_noise(conv_bytes(), noise_images(4)) is None


@pytest.mark.parametrize("refit", [False, True])
def test_a_model_calibrated_with_dark_pictures_is_told_from_a_proper_one(refit: bool) -> None:
    content, road = conv_bytes(), noise_images(16)
    found = []
    for images_NHWC in (noise_images(16, seed=1), noise_images(16, seed=1) // 64):
        activations = sample_activations(content, quantized_tensors(content), images_NHWC)
        layers = int8_layers(content, activations, CalibrationSettings(refit=refit))
        found.append(excess_noise(quantize(content, layers, layers), road))
    proper, dark = found
    assert proper is not None
    assert proper < 3
    assert dark is not None
    assert dark > 4 * proper


def test_a_model_with_float16_between_its_int8_layers_is_judged_alike() -> None:
    content = conv_bytes()
    activations = sample_activations(content, quantized_tensors(content), noise_images(16, seed=1))
    layers = int8_layers(content, activations, CalibrationSettings(refit=False))
    int8 = quantize(content, layers, layers)
    found = [excess_noise(model, noise_images(16)) for model in (int8, to_float16(int8, {}))]
    assert found[0] == pytest.approx(found[1], rel=0.05)
