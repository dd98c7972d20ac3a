"""Training with INT8 in the graph: what torch trains is what ONNX Runtime and TensorRT get."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ClassList
from edge_road.export.depthwise import all_layers
from edge_road.export.onnx_edit import read_model
from edge_road.export.qat import learnt_layers, twin_of
from edge_road.export.quantize import Int8Layer, quantize
from edge_road.export.target import CalibrationSettings
from edge_road.export.work import int8_work_share
from edge_road.frames import Prediction
from edge_road.nn.distill import Taught, fine_tune

GRAPH = conv_bytes()
CLASSES = ClassList(("dry", "wet", "icy"))


def answers(onnx_bytes: bytes, images_NHWC: np.ndarray) -> Prediction:
    return OnnxPredictor(onnx_bytes, CLASSES, SIZE, name="test").predict(images_NHWC)


def taught(count: int, seed: int) -> Taught:
    images_NHWC = noise_images(count, seed)
    said = answers(GRAPH, images_NHWC)
    return Taught(images_NHWC, said.logits_NC, said.features_ND)


@pytest.fixture(scope="module")
def start() -> dict[str, Int8Layer]:
    return all_layers(GRAPH, noise_images(24), CalibrationSettings())


@pytest.fixture(scope="module")
def trained(start: dict[str, Int8Layer]) -> tuple[dict[str, Int8Layer], list[float]]:
    twin = twin_of(GRAPH, start)
    errors = fine_tune(
        twin,
        lambda epoch: taught(48, epoch),
        taught(24, 9),
        epochs=4,
        batch_size=8,
        learning_rate=0.05,
        seed=0,
    )
    return learnt_layers(twin, start), errors


def test_every_layer_is_int8_depthwise_too(start: dict[str, Int8Layer]) -> None:
    model = read_model(quantize(GRAPH, start, start))
    heavy = [node for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
    assert len(heavy) == 5
    for node in heavy:
        assert node.input[0].endswith("_dq")
        assert node.input[1].endswith("_dq")
    assert int8_work_share(quantize(GRAPH, start, start)) == 1.0


def test_torch_and_onnx_runtime_compute_the_same_int8(
    start: dict[str, Int8Layer], trained: tuple[dict[str, Int8Layer], list[float]]
) -> None:
    images_NHWC = noise_images(16, seed=5)
    for layers in (start, trained[0]):
        there = answers(quantize(GRAPH, layers, layers), images_NHWC)
        with torch.no_grad():
            logits_NC, features_ND = twin_of(GRAPH, layers)(torch.from_numpy(images_NHWC))
        # Sums in another order may push a value over the edge of a step: one step of the last inputs.
        tolerance = 0.02 * float(np.abs(there.logits_NC).max())
        np.testing.assert_allclose(logits_NC.numpy(), there.logits_NC, atol=tolerance)
        np.testing.assert_allclose(features_ND.numpy(), there.features_ND, atol=tolerance)


def test_training_follows_the_float_model_more_closely(
    start: dict[str, Int8Layer], trained: tuple[dict[str, Int8Layer], list[float]]
) -> None:
    layers, errors = trained
    assert min(errors) < 0.8 * errors[0]
    images_NHWC = noise_images(32, seed=7)
    wanted_NC = answers(GRAPH, images_NHWC).logits_NC

    def distance(chosen: dict[str, Int8Layer]) -> float:
        return float(
            np.square(answers(quantize(GRAPH, chosen, chosen), images_NHWC).logits_NC - wanted_NC).mean()
        )

    assert distance(layers) < distance(start)


def test_training_that_makes_it_worse_is_forgotten(start: dict[str, Int8Layer]) -> None:
    twin = twin_of(GRAPH, start)
    errors = fine_tune(
        twin,
        lambda epoch: taught(16, epoch),
        taught(16, 9),
        epochs=1,
        batch_size=8,
        learning_rate=30.0,
        seed=0,
    )
    assert errors[1] > errors[0]
    for name, layer in learnt_layers(twin, start).items():
        np.testing.assert_array_equal(layer.values, start[name].values)


def test_the_same_seed_trains_the_same_layers(start: dict[str, Int8Layer]) -> None:
    found = []
    for _ in range(2):
        twin = twin_of(GRAPH, start)
        fine_tune(
            twin, lambda e: taught(16, e), taught(8, 9), epochs=1, batch_size=4, learning_rate=0.02, seed=3
        )
        layers = learnt_layers(twin, start)
        found.append(quantize(GRAPH, layers, layers))
    assert found[0] == found[1]
