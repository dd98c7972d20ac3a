"""INT8 in the one form that every TensorRT takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from tiny_onnx import SIZE, conv_bytes, conv_graph, noise_images

from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.export.calibration import sample_activations
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.quantize import (
    Int8Layer,
    int8_layers,
    quantizable_nodes,
    quantize,
    quantize_weight,
    quantized_tensors,
)
from edge_road.export.sensitivity import Trial, agreement_trial, by_sensitivity, fewest_float
from edge_road.export.target import CalibrationSettings


def names(content: bytes) -> list[str]:
    return [node.name for node in quantizable_nodes(content)]


def layers_of(content: bytes, **settings: Any) -> dict[str, Int8Layer]:
    activations = sample_activations(content, quantized_tensors(content), noise_images(16))
    return int8_layers(content, activations, CalibrationSettings(**settings))


@pytest.fixture(scope="module")
def int8_bytes() -> bytes:
    content = conv_bytes()
    return quantize(content, layers_of(content), names(content))


def test_depthwise_convolutions_stay_in_float() -> None:
    assert names(conv_bytes()) == ["Conv_3", "Conv_6", "Gemm_10", "Gemm_11"]


def test_only_inputs_of_convolutions_and_linear_layers_are_quantised(int8_bytes: bytes) -> None:
    graph = read_model(int8_bytes).graph
    consumers = {node.op_type for node in graph.node if any(name.endswith("_dq") for name in node.input)}
    assert consumers == {"Conv", "Gemm"}
    quantised = [node for node in graph.node if node.op_type == "QuantizeLinear"]
    assert sorted(node.input[0] for node in quantised) == ["c_balanced", "features", "g", "unit"]


def test_zero_points_are_zero_scales_are_positive_and_no_bias_is_quantised(int8_bytes: bytes) -> None:
    graph = read_model(int8_bytes).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    assert all((tensors[name] == 0).all() for name in tensors if name.endswith("_zero"))
    assert all((tensors[name] > 0).all() for name in tensors if name.endswith("_scale"))
    assert not any(tensor.dtype == np.int32 for tensor in tensors.values())
    biases = [node.input[2] for node in graph.node if node.op_type == "Gemm" and len(node.input) > 2]
    assert all(tensors[name].dtype == np.float32 for name in biases)


def test_the_float_weights_are_gone_and_the_graph_is_still_ours(int8_bytes: bytes) -> None:
    tensors = {tensor.name for tensor in read_model(int8_bytes).graph.initializer}
    assert {"stem", "point", "feature", "classifier"}.isdisjoint(tensors)
    assert {"depthwise", "temperature", "stem_bias"} <= tensors
    assert check_onnx(int8_bytes).quantized


def test_it_computes_nearly_what_the_float_model_computes(int8_bytes: bytes) -> None:
    images_NHWC = noise_images(40, seed=3)
    expected = OnnxPredictor(conv_bytes(), ROAD_CLASSES, SIZE, name="float").predict(images_NHWC)
    answer = OnnxPredictor(int8_bytes, ROAD_CLASSES, SIZE, name="int8").predict(images_NHWC)
    spread = float(np.abs(expected.logits_NC).max())
    difference = np.abs(answer.logits_NC - expected.logits_NC)
    assert 0 < difference.mean() < 0.02 * spread


def test_a_tensor_that_feeds_two_layers_is_quantised_once() -> None:
    model = conv_graph()
    model.graph.node[6].input[0] = "b"  # Conv_6 and a new linear layer read the same tensor
    model.graph.node[5].input[0] = "b"
    model.graph.node[5].attribute[0].i = 1
    model.graph.initializer[4].CopyFrom(
        numpy_helper.from_array(np.ones((6, 6, 1, 1), np.float32), "depthwise")
    )
    content = write_model(model)
    graph = read_model(quantize(content, layers_of(content), names(content))).graph
    assert sum(node.op_type == "QuantizeLinear" and node.input[0] == "b_balanced" for node in graph.node) == 1


@pytest.mark.parametrize(("axis", "channels"), [(0, 4), (1, 3)])
def test_the_largest_weight_of_each_channel_becomes_127(axis: int, channels: int) -> None:
    weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    values, scales = quantize_weight(weight, axis)
    assert scales.shape == (channels,)
    assert (np.abs(values).max(axis=1 - axis) == 127).all()
    shape = (-1, 1) if axis == 0 else (1, -1)
    assert np.abs(values * scales.reshape(shape) - weight).max() <= scales.max() / 2 + 1e-7


def test_refitting_and_balancing_come_closer_to_the_float_model() -> None:
    content, images_NHWC = conv_bytes(), noise_images(40, seed=3)

    def logits(model_bytes: bytes) -> np.ndarray:
        return OnnxPredictor(model_bytes, ROAD_CLASSES, SIZE, name="x").predict(images_NHWC).logits_NC

    def error(refit: bool) -> float:
        layers = layers_of(content, refit=refit)
        return float(np.abs(logits(quantize(content, layers, layers)) - logits(content)).mean())

    assert error(refit=True) < 0.9 * error(refit=False)


def test_a_channel_of_zeros_gets_a_scale_that_is_not_zero() -> None:
    values, scales = quantize_weight(np.zeros((2, 3), np.float32), 0)
    assert (values == 0).all()
    assert (scales > 0).all()


def test_equal_graphs_give_equal_bytes(int8_bytes: bytes) -> None:
    content = conv_bytes()
    assert quantize(content, layers_of(content), names(content)) == int8_bytes


def test_the_layer_that_suffers_most_comes_first() -> None:
    """A step far too coarse for one layer's input: that layer must be the one."""
    content = conv_bytes()
    layers = layers_of(content)
    layers["Conv_6"] = replace(layers["Conv_6"], input_scale=1.0)
    order = by_sensitivity(content, layers, ROAD_CLASSES, noise_images(6))
    assert order[0][0] == "Conv_6"
    assert {name for name, _ in order} == set(names(content))
    judge = agreement_trial(content, layers, ROAD_CLASSES, noise_images(20))
    assert judge(("Conv_6",)).logit_error < 0.5 * judge(()).logit_error


@pytest.mark.parametrize("needed", range(10))
def test_the_search_finds_the_fewest_float_layers(needed: int) -> None:
    order = [f"Conv_{number}" for number in range(9)]

    def judge(kept: tuple[str, ...]) -> Trial:
        return Trial(kept, 0.99 if len(kept) >= needed else 0.9 + 0.001 * len(kept), 0.0)

    choice, trials = fewest_float(order, judge, wanted=0.98, most=8)
    assert choice.kept_float == tuple(order[: min(needed, 8)])
    assert len(trials) <= 5
