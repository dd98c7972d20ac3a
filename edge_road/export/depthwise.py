"""Depthwise convolutions in INT8 too.

With one scale for all channels of their inputs they ruin a MobileNet (see docs/export.md). But each channel
has a weight scale of its own: the inputs may be widened channel by channel until all reach equally far, at no
cost in the weights (the exact case of cross-layer equalisation, Nagel et al. 2019, section 4.1).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, numpy_helper

from edge_road.export.balance import widen
from edge_road.export.calibration import Activations, sample_activations
from edge_road.export.onnx_edit import read_model
from edge_road.export.quantize import Int8Layer, int8_layers, quantize_weight, quantized_tensors, step_of
from edge_road.export.reach import reach
from edge_road.export.target import CalibrationSettings
from edge_road.frames import Images


def depthwise_nodes(onnx_bytes: bytes) -> list[NodeProto]:
    graph = read_model(onnx_bytes).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return [node for node in graph.node if _is_depthwise(node, shapes.get((*node.input, "", "")[1]))]


def depthwise_tensors(onnx_bytes: bytes) -> list[str]:
    return list(dict.fromkeys(node.input[0] for node in depthwise_nodes(onnx_bytes)))


def all_layers(
    onnx_bytes: bytes, images_NHWC: Images, settings: CalibrationSettings, seed: int = 0
) -> dict[str, Int8Layer]:
    """Every convolution and linear layer of a graph, by node name."""
    tensors = list(dict.fromkeys([*quantized_tensors(onnx_bytes), *depthwise_tensors(onnx_bytes)]))
    activations = sample_activations(onnx_bytes, tensors, images_NHWC, seed)
    return {
        **int8_layers(onnx_bytes, activations, settings),
        **depthwise_layers(onnx_bytes, activations, settings),
    }


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
