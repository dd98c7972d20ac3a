"""Does a real TensorRT take this model? TensorRT-RTX parses and builds it without any GPU.

It refuses what TensorRT on a device refuses (int32 bias Q/DQ, non-zero zero points, zero scales,
unknown operators) and names each kernel with its data types. It has no Orin target: it proves the
ONNX file, not the engine of a Jetson.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edge_road.export.trt_network import BuildShape

TIME_LIMIT_S = 300.0
_LAYER_TYPE = re.compile(r"LayerType: (\w+)")
_DATA_TYPE = re.compile(r"Datatype: (\w+)")
_ONNX_NODE = re.compile(r"\[ONNX Layer: ([^\]]+)\]")
_HEAVY_NODE = re.compile(r"(?:Conv|Gemm|MatMul)_\d+")


@dataclass(frozen=True)
class Kernel:
    """One kernel of the built engine."""

    layer_type: str
    input_types: tuple[str, ...]
    weight_types: tuple[str, ...]
    onnx_nodes: tuple[str, ...]

    @property
    def heavy(self) -> bool:
        """A convolution or a linear layer; generated kernels (kgen) only move or scale values."""
        return self.layer_type != "kgen" and any(map(_HEAVY_NODE.fullmatch, self.onnx_nodes))

    @property
    def int8(self) -> bool:
        return "Int8" in self.input_types and "Int8" in self.weight_types


@dataclass(frozen=True)
class RtxReport:
    status: Literal["built", "refused", "not installed"]
    version: str = ""
    reasons: tuple[str, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    plan_bytes: int = 0

    @property
    def heavy_kernels(self) -> int:
        return sum(kernel.heavy for kernel in self.kernels)

    @property
    def int8_kernels(self) -> int:
        return sum(kernel.heavy and kernel.int8 for kernel in self.kernels)

    @property
    def int8_share(self) -> float:
        """Of the convolution and linear kernels, light ones like heavy ones; see `work` for their weight."""
        return self.int8_kernels / max(1, self.heavy_kernels)

    @property
    def int8_nodes(self) -> set[str]:
        """ONNX nodes that run in INT8 kernels."""
        return {node for kernel in self.kernels if kernel.heavy and kernel.int8 for node in kernel.onnx_nodes}


def rtx_check(onnx_bytes: bytes, shape: BuildShape, time_limit_s: float = TIME_LIMIT_S) -> RtxReport:
    if importlib.util.find_spec("tensorrt_rtx") is None:
        return RtxReport("not installed", reasons=("the Python package tensorrt_rtx is not installed",))
    command = [sys.executable, "-m", "edge_road.export.rtx_child", json.dumps(asdict(shape))]
    # The child must find this very package, also where it is not installed.
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.run(command, input=onnx_bytes, capture_output=True, timeout=time_limit_s, env=here)
    except subprocess.TimeoutExpired:
        return RtxReport("refused", reasons=(f"TensorRT-RTX did not finish within {time_limit_s:.0f} s",))
    if child.returncode != 0:
        return RtxReport("refused", reasons=(_how_it_died(child.returncode, child.stderr),))
    return _as_report(json.loads(child.stdout.splitlines()[-1]))


def _as_report(answer: dict[str, Any]) -> RtxReport:
    if "missing" in answer:
        return RtxReport("not installed", reasons=(answer["missing"],))
    return RtxReport(
        "refused" if answer["reasons"] else "built",
        answer["version"],
        tuple(answer["reasons"]),
        tuple(parse_kernel(row) for row in answer["kernels"]),
        answer["plan_bytes"],
    )


def parse_kernel(row: str) -> Kernel:
    """`Name: .., LayerType: .., Inputs: [..], Constants: [..], Outputs: [..], .. [ONNX Layer: ..]`"""
    layer_type = _LAYER_TYPE.search(row)
    inputs, _, rest = row.partition("Constants: ")
    constants, _, tail = rest.partition("Outputs: ")
    return Kernel(
        layer_type[1] if layer_type else "",
        tuple(_DATA_TYPE.findall(inputs)),
        tuple(_DATA_TYPE.findall(constants)),
        tuple(_ONNX_NODE.findall(tail)),
    )


def _how_it_died(code: int, stderr: bytes) -> str:
    if code < 0:
        return f"TensorRT-RTX ended with {signal.Signals(-code).name}"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    return f"TensorRT-RTX could not run: {last[0][:300]}"
