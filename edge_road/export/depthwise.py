"""Depthwise convolutions in INT8, for models that are trained with it.

Rounded after training they cost too much (see docs/export.md), so only quantisation-aware training uses them.
Each channel has a weight scale of its own, so the inputs may be widened channel by channel at no cost.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, numpy_helper

from edge_road.export.balance import widen
from edge_road.export.calibration import Activations
from edge_road.export.onnx_edit import read_model
from edge_road.export.quantize import Int8Layer, quantize_weight, step_of
from edge_road.export.reach import reach
from edge_road.export.target import CalibrationSettings


def depthwise_nodes(onnx_bytes: bytes) -> list[NodeProto]:
    graph = read_model(onnx_bytes).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return [node for node in graph.node if _is_depthwise(node, shapes.get((*node.input, "", "")[1]))]


def depthwise_tensors(onnx_bytes: bytes) -> list[str]:
    return list(dict.fromkeys(node.input[0] for node in depthwise_nodes(onnx_bytes)))


def depthwise_layers(
    onnx_bytes: bytes, activations: Activations, settings: CalibrationSettings
) -> dict[str, Int8Layer]:
    weights = {t.name: t for t in read_model(onnx_bytes).graph.initializer}
    layers = {}
    for node in depthwise_nodes(onnx_bytes):
        weight = numpy_helper.to_array(weights[node.input[1]])
        samples_SC = activations[node.input[0]].samples_SC
        found = widen(samples_SC)
        gain_O = np.repeat(found.gain_C, len(weight) // len(found.gain_C))
        narrowed = np.asarray(weight / gain_O[:, None, None, None], np.float32)
        values, scales_O = quantize_weight(narrowed, axis=0)
        widened_SC = found.apply(samples_SC)
        largest = float(np.abs(widened_SC).max())
        scale = step_of(reach(widened_SC, largest, settings.method, settings.percentile))
        layers[node.name] = Int8Layer(scale, values, scales_O, None, found)
    return layers


def _is_depthwise(node: NodeProto, shape: tuple[int, ...] | None) -> bool:
    groups = [attribute.i for attribute in node.attribute if attribute.name == "group"]
    return node.op_type == "Conv" and shape is not None and shape[1] == 1 and groups not in ([], [1])
