"""INT8 as explicit Q/DQ nodes, in the form that TensorRT 10 and 11 and ONNX Runtime all take.

Every choice below was forced by a measurement on MobileNetV3 (see docs/export.md):
Q/DQ sits on the inputs of convolutions and linear layers only; depthwise convolutions, HardSwish,
HardSigmoid and Mul stay in float; weights are symmetric per output channel, activations symmetric
per tensor, all zero points 0; biases stay in float (TensorRT refuses an int32 DequantizeLinear).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from edge_road.export.balance import Balance, balance
from edge_road.export.calibration import Activation, Activations, activation_reach
from edge_road.export.onnx_edit import put_nodes, read_model, write_model
from edge_road.export.reach import LEVELS, half_scales, reach
from edge_road.export.refit import enough_samples, refit, weight_scales
from edge_road.export.target import CalibrationSettings
from edge_road.frames import Floats


@dataclass(frozen=True, eq=False)
class Int8Layer:
    """What one layer becomes: the step of its inputs, and its weights."""

    input_scale: float
    values: npt.NDArray[np.int8]
    scales_O: Floats
    bias_O: Floats | None
    """none: as it was"""
    balance: Balance | None = None
    """what is done to the inputs first"""


Int8Layers = Mapping[str, Int8Layer]


def quantizable_nodes(onnx_bytes: bytes) -> list[NodeProto]:
    """Convolutions over all channels and linear layers, in graph order."""
    graph = read_model(onnx_bytes).graph
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return [node for node in graph.node if _worth_quantizing(node, weights)]


def quantized_tensors(onnx_bytes: bytes) -> list[str]:
    """The activations that `int8_layers` needs, each once."""
    return list(dict.fromkeys(node.input[0] for node in quantizable_nodes(onnx_bytes)))


def int8_layers(
    onnx_bytes: bytes, activations: Activations, settings: CalibrationSettings
) -> dict[str, Int8Layer]:
    """By node name, for every layer that can be INT8."""
    reaches = activation_reach(activations, settings)
    tensors = {tensor.name: tensor for tensor in read_model(onnx_bytes).graph.initializer}
    layers = {}
    for node in quantizable_nodes(onnx_bytes):
        weight = numpy_helper.to_array(tensors[node.input[1]])
        axis, scale = output_axis(node), step_of(reaches[node.input[0]])
        if settings.refit and _has_fittable_weight(node, weight):
            bias_O = bias_of(node, tensors, weight.shape[axis])
            activation = activations[node.input[0]]
            layers[node.name] = _fitted_layer(weight, bias_O, activation, scale, axis, settings)
        else:
            layers[node.name] = Int8Layer(scale, *quantize_weight(weight, axis), None)
    return layers


def quantize(onnx_bytes: bytes, layers: Int8Layers, chosen: Collection[str]) -> bytes:
    """The same graph with Q/DQ pairs on the chosen nodes."""
    model = read_model(onnx_bytes)
    editor = _Editor(model.graph)
    for node in model.graph.node:
        if node.name in chosen:
            editor.quantize(node, layers[node.name])
        editor.nodes.append(node)
    put_nodes(model.graph, editor.nodes)
    return write_model(model)


def balanced_name(tensor: str, found: Balance | None) -> str:
    """Of the tensor that is quantised in place of `tensor`; layers that read it share its scale."""
    if found is None:
        return tensor
    return f"{tensor}_widened" if found.keeps_zero else f"{tensor}_balanced"


def quantize_weight(weight: Floats, axis: int) -> tuple[npt.NDArray[np.int8], Floats]:
    """Each weight to its nearest step, symmetric per output channel."""
    scales = weight_scales(np.moveaxis(weight, axis, 0))
    shape = [-1 if dimension == axis else 1 for dimension in range(weight.ndim)]
    steps = np.rint(weight / scales.reshape(shape))
    return np.clip(steps, -LEVELS, LEVELS).astype(np.int8), scales


def _worth_quantizing(node: NodeProto, weights: Mapping[str, tuple[int, ...]]) -> bool:
    if node.op_type not in ("Conv", "Gemm", "MatMul") or len(node.input) < 2 or node.input[1] not in weights:
        return False
    # Ten of the twelve most sensitive nodes of MobileNetV3 are depthwise: the first costs 20 % of labels.
    return node.op_type != "Conv" or _attribute(node, "group", 1) == 1


def _has_fittable_weight(node: NodeProto, weight: Floats) -> bool:
    """One matrix that multiplies the channels of a pixel, and a place for a bias."""
    return node.op_type == "Gemm" or (node.op_type == "Conv" and weight.shape[2:] == (1, 1))


def bias_of(node: NodeProto, tensors: Mapping[str, TensorProto], outputs: int) -> Floats:
    if len(node.input) > 2 and node.input[2]:
        return numpy_helper.to_array(tensors[node.input[2]])
    return np.zeros(outputs, np.float32)


def _fitted_layer(
    weight: Floats,
    bias_O: Floats,
    activation: Activation,
    scale: float,
    axis: int,
    settings: CalibrationSettings,
) -> Int8Layer:
    """Balanced too where there are samples enough to know every channel."""
    matrix_OI = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)
    samples_SC, found = activation.samples_SC, None
    if activation.of_pixels and enough_samples(samples_SC):
        found = balance(samples_SC)
        matrix_OI, bias_O = found.undo(matrix_OI, bias_O)
        samples_SC = found.apply(samples_SC)
        largest = float(np.abs(samples_SC).max())
        scale = step_of(reach(samples_SC, largest, settings.method, settings.percentile))
    fitted = refit(matrix_OI, bias_O, samples_SC, scale)
    values = fitted.values_OI if axis == 0 else fitted.values_OI.T
    return Int8Layer(scale, values.reshape(weight.shape), fitted.scales_O, fitted.bias_O, found)


def step_of(reach_of_tensor: float) -> float:
    return float(half_scales(np.array(reach_of_tensor / LEVELS)))


def _attribute(node: NodeProto, name: str, default: int) -> int:
    found = [attribute.i for attribute in node.attribute if attribute.name == name]
    return int(found[0]) if found else default


def output_axis(node: NodeProto) -> int:
    if node.op_type == "Conv":
        return 0
    return 0 if _attribute(node, "transB", 0) else 1


class _Editor:
    """Collects new nodes and tensors; each activation is quantised once."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.nodes: list[NodeProto] = []
        self.done: set[str] = set()

    def quantize(self, node: NodeProto, layer: Int8Layer) -> None:
        if layer.balance is not None:
            node.input[0] = self._balanced(node.input[0], layer.balance, pixels=node.op_type == "Conv")
        node.input[0] = self._once(f"{node.input[0]}_dq", lambda: self._activation(node.input[0], layer))
        node.input[1] = self._weight(f"{node.name}_weight", layer, output_axis(node))
        if layer.bias_O is not None:
            bias = self._tensor(f"{node.name}_bias", layer.bias_O)
            node.input[:] = [*node.input[:2], bias]

    def _balanced(self, name: str, found: Balance, *, pixels: bool) -> str:
        shape = (1, -1, 1, 1) if pixels else (1, -1)

        def widened() -> str:
            gain = self._tensor(f"{name}_wide_gain", found.gain_C.reshape(shape))
            return self._insert("Mul", [name, gain], f"{name}_widened")

        def balanced() -> str:
            gain = self._tensor(f"{name}_gain", found.gain_C.reshape(shape))
            shift = self._tensor(f"{name}_shift", found.shift_C.reshape(shape))
            self._insert("Mul", [name, gain], f"{name}_gained")
            return self._insert("Add", [f"{name}_gained", shift], f"{name}_balanced")

        return self._once(balanced_name(name, found), widened if found.keeps_zero else balanced)

    def _activation(self, name: str, layer: Int8Layer) -> str:
        parameters = [
            self._tensor(f"{name}_scale", np.float32(layer.input_scale)),
            self._tensor(f"{name}_zero", np.int8(0)),
        ]
        self._insert("QuantizeLinear", [name, *parameters], f"{name}_q")
        return self._insert("DequantizeLinear", [f"{name}_q", *parameters], f"{name}_dq")

    def _weight(self, name: str, layer: Int8Layer, axis: int) -> str:
        inputs = [
            self._tensor(f"{name}_q", layer.values),
            self._tensor(f"{name}_scale", layer.scales_O),
            self._tensor(f"{name}_zero", np.zeros(len(layer.scales_O), np.int8)),
        ]
        return self._insert("DequantizeLinear", inputs, f"{name}_dq", axis=axis)

    def _once(self, result: str, build: Callable[[], str]) -> str:
        if result not in self.done:
            self.done.add(build())
        return result

    def _tensor(self, name: str, value: npt.NDArray[np.generic] | np.generic) -> str:
        self.graph.initializer.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def _insert(self, operator: str, inputs: list[str], output: str, axis: int | None = None) -> str:
        node = helper.make_node(operator, inputs, [output], output)
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self.nodes.append(node)
        return output
