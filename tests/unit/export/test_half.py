"""Float16: the same answers from half the bytes, with and without INT8 inside."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from tiny_onnx import SIZE, conv_bytes, conv_graph, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.export.calibration import largest_values, sample_activations
from edge_road.export.half import to_float16
from edge_road.export.onnx_edit import read_model, with_temperature, write_model
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
from edge_road.export.rtx_check import rtx_check
from edge_road.export.target import CalibrationSettings
from edge_road.export.trt_network import BuildShape
from edge_road.frames import Prediction


def answer(content: bytes) -> Prediction:
    return OnnxPredictor(content, ROAD_CLASSES, SIZE, name="x").predict(noise_images(12, seed=3))


def int8_bytes() -> bytes:
    content = conv_bytes()
    activations = sample_activations(content, quantized_tensors(content), noise_images(8))
    layers = int8_layers(content, activations, CalibrationSettings())
    return quantize(content, layers, layers.keys())


def types_of(content: bytes) -> dict[str, int]:
    return {tensor.name: tensor.data_type for tensor in read_model(content).graph.initializer}


def test_it_computes_nearly_what_the_float_model_computes() -> None:
    expected, half = answer(conv_bytes()), answer(to_float16(conv_bytes(), {}))
    difference_NC = np.abs(half.logits_NC - expected.logits_NC)
    assert 0 < difference_NC.max() < 0.01 * np.abs(expected.logits_NC).max()
    np.testing.assert_allclose(half.features_ND, expected.features_ND, rtol=0.02, atol=0.01)


def test_the_border_and_the_softmax_stay_in_float32() -> None:
    model = read_model(to_float16(conv_bytes(), {}))
    assert {value.type.tensor_type.elem_type for value in model.graph.output} == {TensorProto.FLOAT}
    kinds = types_of(write_model(model))
    assert kinds["temperature"] == kinds["scale"] == TensorProto.FLOAT
    layers = {name for name in kinds if name.startswith(("stem", "depthwise", "point", "feature", "class"))}
    assert {kinds[name] for name in layers} == {TensorProto.FLOAT16}
    assert model.opset_import[0].version == 18


def test_a_layer_beyond_the_range_of_float16_stays_in_float32() -> None:
    kinds = types_of(to_float16(conv_bytes(), {"d": 1e5}))
    assert kinds["point"] == TensorProto.FLOAT
    assert kinds["stem_f16"] == TensorProto.FLOAT16
    model = conv_graph()
    model.graph.initializer[4].CopyFrom(numpy_helper.from_array(np.full((6, 1, 3, 3), 1e6, "f"), "depthwise"))
    assert types_of(to_float16(write_model(model), {}))["depthwise"] == TensorProto.FLOAT


def test_the_largest_values_are_those_of_every_inner_tensor() -> None:
    largest = largest_values(conv_bytes(), noise_images(2))
    assert largest["unit"] == pytest.approx(1.0, abs=0.01)
    assert {"a", "b", "features", "logits"} <= largest.keys()


def test_scales_are_the_same_numbers_in_float16_and_float32() -> None:
    before, after = (
        {t.name: numpy_helper.to_array(t) for t in read_model(content).graph.initializer}
        for content in (int8_bytes(), to_float16(int8_bytes(), {}))
    )
    scales = [name for name in before if name.endswith("_scale")]
    assert scales
    for name in scales:
        assert (before[name] >= 2.0**-14).all()
        np.testing.assert_array_equal(before[name], after[name + "_f16"].astype(np.float32))


def test_the_temperature_can_still_be_set() -> None:
    content = with_temperature(to_float16(conv_bytes(), {}), 0.5)
    assert answer(content).probabilities_NC.max() > answer(conv_bytes()).probabilities_NC.max()


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT-RTX is not installed")
def test_tensorrt_builds_both_and_keeps_the_int8_kernels() -> None:
    half = rtx_check(to_float16(conv_bytes(), {}), BuildShape(*SIZE))
    mixed = rtx_check(to_float16(int8_bytes(), {}), BuildShape(*SIZE))
    assert (half.status, mixed.status) == ("built", "built"), (half.reasons, mixed.reasons)
    assert half.int8_share == 0.0
    assert mixed.int8_share == rtx_check(int8_bytes(), BuildShape(*SIZE)).int8_share >= 0.5
