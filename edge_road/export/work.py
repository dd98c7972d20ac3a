"""The multiply-adds of a graph, and how much of them TensorRT-RTX does in INT8.

A count of kernels weighs a depthwise layer, which stays in float by design, like a layer of fifty times its
work; so the share of the work is what the gate judges.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import shape_inference

from edge_road.export.depthwise import depthwise_nodes
from edge_road.export.onnx_edit import read_model
from edge_road.export.quantize import quantizable_nodes
from edge_road.export.rtx_check import RtxReport

_HEAVY = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True)
class Int8Work:
    """What TensorRT-RTX does in INT8 of one model."""

    share: float
    """of the multiply-adds"""
    in_float: tuple[str, ...]
    """layers that are not INT8, with the reason; without the depthwise ones that stay in float by design"""


def multiply_adds(onnx_bytes: bytes) -> dict[str, int]:
    """Of each convolution and linear layer, for one image."""
    graph = shape_inference.infer_shapes(read_model(onnx_bytes)).graph
    known = (*graph.value_info, *graph.output)
    shapes = {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in known}
    shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    return {
        node.name: int(np.prod([*shapes[node.output[0]][2:], *shapes[node.input[1]]], dtype=np.int64))
        for node in graph.node
        if node.op_type in _HEAVY
    }


def quantized_nodes(onnx_bytes: bytes) -> set[str]:
    """Convolutions and linear layers whose inputs come out of a Q/DQ pair."""
    nodes = read_model(onnx_bytes).graph.node
    dequantized = {node.output[0] for node in nodes if node.op_type == "DequantizeLinear"}
    return {node.name for node in nodes if node.op_type in _HEAVY and node.input[0] in dequantized}


def share_of_work(work: Mapping[str, int], nodes: Collection[str]) -> float:
    return sum(count for name, count in work.items() if name in nodes) / max(1, sum(work.values()))


def int8_work_share(onnx_bytes: bytes) -> float:
    """As the graph asks for; what a device makes of it is for its TensorRT to say."""
    return share_of_work(multiply_adds(onnx_bytes), quantized_nodes(onnx_bytes))


def int8_work(report: RtxReport, float_bytes: bytes, onnx_bytes: bytes) -> Int8Work:
    """Of the model `onnx_bytes`, which was made from `float_bytes` and built as `report` tells."""
    work, quantized = multiply_adds(float_bytes), quantized_nodes(onnx_bytes)
    by_design = {node.name for node in depthwise_nodes(float_bytes)} - quantized
    possible = {node.name for node in quantizable_nodes(float_bytes)}

    def reason(name: str) -> str:
        if name in quantized:
            return "quantised, but TensorRT-RTX computes it in float"
        return "kept in float for its sensitivity" if name in possible else "of a kind that stays in float"

    others = [name for name in work if name not in report.int8_nodes | by_design]
    return Int8Work(
        share_of_work(work, report.int8_nodes), tuple(f"{name}: {reason(name)}" for name in others)
    )
