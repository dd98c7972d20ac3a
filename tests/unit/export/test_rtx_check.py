"""TensorRT-RTX as a judge of ONNX files, on a machine without a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import helper, numpy_helper
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.export import rtx_check as rtx
from edge_road.export.calibration import sample_activations
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
from edge_road.export.rtx_check import Kernel, parse_kernel, rtx_check
from edge_road.export.target import CalibrationSettings
from edge_road.export.trt_network import BuildShape

SHAPE = BuildShape(*SIZE)
ROW = (
    "Name: Conv_5_myl0_3, LayerType: correlation, Inputs: [ { Name: a_myl0, Dimensions: [-1,4,192,192], "
    "Datatype: Int8, Format: (NHWC) Channel major format }], Constants: [ { Name: b_myl0, Dimensions: "
    "[16,4,3,3], Datatype: Int8, Format: (NHWC) Channel major format }, { Name: c_myl0, Dimensions: "
    "[1,16,1,1], Datatype: Float, Format: (Linear) Row major linear format }], Outputs: [ { Name: d_myl0, "
    "Dimensions: [-1,16,96,96], Datatype: Float, Format: (NHWC) Channel major format }], TacticName: x, "
    "StreamId: 0, Metadata: [ONNX Layer: Conv_5][ONNX Layer: div_1_dq][ONNX Layer: stem_dq]"
)
needs_rtx = pytest.mark.skipif(
    importlib.util.find_spec("tensorrt_rtx") is None, reason="TensorRT-RTX is not installed"
)


def int8_bytes() -> bytes:
    content = conv_bytes()
    activations = sample_activations(content, quantized_tensors(content), noise_images(8))
    layers = int8_layers(content, activations, CalibrationSettings())
    return quantize(content, layers, layers)


def test_a_line_of_the_build_log_becomes_a_kernel() -> None:
    kernel = parse_kernel(ROW)
    assert kernel == Kernel("correlation", ("Int8",), ("Int8", "Float"), ("Conv_5", "div_1_dq", "stem_dq"))
    assert kernel.heavy
    assert kernel.int8


def test_a_generated_kernel_or_a_float_one_does_not_count_as_int8() -> None:
    assert not parse_kernel(ROW.replace("correlation", "kgen")).heavy
    assert not parse_kernel(ROW.replace("Int8", "Float")).int8
    assert not parse_kernel(ROW.replace("Conv_5]", "conv_weight_dq]")).heavy


def test_where_it_is_not_installed_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    report = rtx_check(conv_bytes(), SHAPE)
    assert report.status == "not installed"
    assert "tensorrt_rtx" in report.reasons[0]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("raise SystemExit('no driver')", "no driver"),
        ("import time; time.sleep(60)", "did not finish within 1 s"),
    ],
)
def test_a_vendor_library_that_dies_or_hangs_is_a_refusal(
    code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = subprocess.run
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(
        rtx.subprocess, "run", lambda command, **options: run([sys.executable, "-c", code], **options)
    )
    report = rtx_check(conv_bytes(), SHAPE, time_limit_s=1.0 if "sleep" in code else 60.0)
    assert report.status == "refused"
    assert reason in report.reasons[0]


def test_a_package_without_its_libraries_is_not_the_model_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SimpleNamespace(returncode=0, stdout=b'{"missing": "libcudart.so.13: cannot open"}\n')
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(rtx.subprocess, "run", lambda *_, **__: answer)
    report = rtx_check(conv_bytes(), SHAPE)
    assert report.status == "not installed"
    assert "libcudart" in report.reasons[0]


@needs_rtx
def test_float_and_int8_build_and_the_kernels_tell_their_types() -> None:
    float32, int8 = rtx_check(conv_bytes(), SHAPE), rtx_check(int8_bytes(), SHAPE)
    assert (float32.status, int8.status) == ("built", "built")
    assert float32.int8_share == 0.0
    assert float32.heavy_kernels >= 4
    assert int8.int8_share >= 0.5
    assert int8.plan_bytes > 0


@needs_rtx
def test_a_zero_point_that_is_not_zero_is_refused() -> None:
    model = read_model(int8_bytes())
    zero = next(tensor for tensor in model.graph.initializer if tensor.name == "unit_zero")
    zero.CopyFrom(numpy_helper.from_array(np.int8(3).reshape(()), "unit_zero"))
    report = rtx_check(write_model(model), SHAPE)
    assert report.status == "refused"
    assert report.reasons


@needs_rtx
def test_an_int32_bias_is_refused() -> None:
    """What ONNX Runtime's own quantiser writes by default."""
    model = read_model(int8_bytes())
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(np.zeros(6, np.int32), "bias_q"),
            numpy_helper.from_array(np.full(6, 1e-3, np.float32), "bias_scale"),
            numpy_helper.from_array(np.zeros(6, np.int32), "bias_zero"),
        ]
    )
    bias = helper.make_node(
        "DequantizeLinear", ["bias_q", "bias_scale", "bias_zero"], ["bias_dq"], "bias_dq", axis=0
    )
    model.graph.node.insert(0, bias)
    next(node for node in model.graph.node if node.name == "Conv_3").input[2] = "bias_dq"
    assert rtx_check(write_model(model), SHAPE).status == "refused"
