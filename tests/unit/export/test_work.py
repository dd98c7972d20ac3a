"""How much of a model's work is INT8, and which layers are not."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch
from onnx import numpy_helper
from tiny_onnx import conv_bytes, conv_graph, noise_images

from edge_road.export.calibration import sample_activations
from edge_road.export.half import to_float16
from edge_road.export.onnx_edit import write_model
from edge_road.export.onnx_graph import export_graph
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
from edge_road.export.rtx_check import Kernel, RtxReport, rtx_check
from edge_road.export.target import CalibrationSettings, load_target
from edge_road.export.trt_network import BuildShape
from edge_road.export.work import int8_work, int8_work_share, multiply_adds
from edge_road.frames import Images
from edge_road.nn.model import build_model
from edge_road.preprocess import Preprocessing
from edge_road.recipe import ModelSettings

DEPTHWISE = "Conv_5"


def int8_bytes(content: bytes, images_NHWC: Images, kept: str = "") -> bytes:
    activations = sample_activations(content, quantized_tensors(content), images_NHWC)
    layers = int8_layers(content, activations, CalibrationSettings(refit=False))
    return to_float16(quantize(content, layers, layers.keys() - {kept}), {})


def built(*int8_nodes: str) -> RtxReport:
    return RtxReport("built", kernels=tuple(Kernel("gemm", ("Int8",), ("Int8",), (n,)) for n in int8_nodes))


def test_the_work_of_a_layer_is_its_weights_times_its_pixels() -> None:
    pixels, inner = 16 * 24, 14 * 22
    assert multiply_adds(conv_bytes()) == {
        "Conv_3": pixels * 6 * 3 * 9,
        DEPTHWISE: inner * 6 * 9,
        "Conv_6": inner * 6 * 6,
        "Gemm_10": 8 * 6,
        "Gemm_11": 8 * 3,
    }


def test_the_graph_says_what_it_asks_for() -> None:
    work = multiply_adds(conv_bytes())
    asked = int8_work_share(int8_bytes(conv_bytes(), noise_images(8)))
    assert asked == pytest.approx(1 - work[DEPTHWISE] / sum(work.values()))
    assert int8_work_share(conv_bytes()) == 0.0


def test_what_tensorrt_runs_counts_and_depthwise_layers_are_no_news() -> None:
    content = conv_bytes()
    work, quantized = multiply_adds(content), int8_bytes(content, noise_images(8))
    found = int8_work(built("Conv_3", "Conv_6", "Gemm_10", "Gemm_11"), content, quantized)
    assert found.share == pytest.approx(1 - work[DEPTHWISE] / sum(work.values()))
    assert found.in_float == ()
    assert int8_work(built("Conv_6"), content, quantized).share == work["Conv_6"] / sum(work.values())


def test_every_other_layer_in_float_is_named_with_the_reason() -> None:
    model = conv_graph()
    model.graph.node[5].attribute[0].i = 2  # three channels in each group: not depthwise, and not quantised
    weight = np.ones((6, 3, 3, 3), np.float32)
    model.graph.initializer[4].CopyFrom(numpy_helper.from_array(weight, "depthwise"))
    content = write_model(model)
    quantized = int8_bytes(content, noise_images(8), kept="Conv_6")
    assert int8_work(built("Gemm_10", "Gemm_11"), content, quantized).in_float == (
        "Conv_3: quantised, but TensorRT-RTX computes it in float",
        "Conv_5: of a kind that stays in float",
        "Conv_6: kept in float for its sensitivity",
    )


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT-RTX is not installed")
@pytest.mark.parametrize(
    ("backbone", "kernels", "work"),
    [
        ("tf_mobilenetv3_small_100", (44, 55), 0.89),
        ("tf_mobilenetv3_large_minimal_100", (34, 49), 0.94),
        ("tf_efficientnet_lite0", (35, 51), 0.91),
    ],
)
def test_networks_of_many_depthwise_layers_do_their_work_in_int8(
    backbone: str, kernels: tuple[int, int], work: float
) -> None:
    """Whole in INT8 but for the depthwise layers, although these are up to a third of the kernels."""
    torch.manual_seed(0)
    model = build_model(ModelSettings(backbone=backbone, features=16), 3)
    content = export_graph(model, Preprocessing(height=64, width=64), ("dry", "wet", "icy"))
    images_NHWC = np.random.default_rng(0).integers(0, 256, (8, 64, 64, 3), dtype=np.uint8)
    quantized = int8_bytes(content, images_NHWC)
    report = rtx_check(quantized, BuildShape(64, 64))
    found = int8_work(report, content, quantized)
    assert (report.int8_kernels, report.heavy_kernels) == kernels
    assert found.in_float == ()
    assert found.share == pytest.approx(work, abs=0.006)
    assert found.share >= load_target("jetson_orin_nano").int8_limits.work_share
