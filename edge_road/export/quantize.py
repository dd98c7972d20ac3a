"""INT8 as explicit Q/DQ nodes, in the form that TensorRT 10 and 11 and ONNX Runtime all take.

Every choice below was forced by a measurement on MobileNetV3 (see export/README.md):
Q/DQ sits on the inputs of convolutions and linear layers only; depthwise convolutions, HardSwish,
HardSigmoid and Mul stay in float; weights are symmetric per output channel, activations symmetric
per tensor, all zero points 0; biases stay in float (TensorRT refuses an int32 DequantizeLinear).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, helper, numpy_helper

from edge_road.export.calibration import LEVELS, SMALLEST_RANGE
from edge_road.export.onnx_edit import read_model, write_model

Reach = Mapping[str, float]


def quantizable_nodes(onnx_bytes: bytes) -> list[NodeProto]:
    """Convolutions over all channels and linear layers, in graph order."""
    graph = read_model(onnx_bytes).graph
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return [node for node in graph.node if _worth_quantizing(node, weights)]


def quantized_tensors(onnx_bytes: bytes) -> list[str]:
    """The activations whose reach `quantize` needs, each once."""
    return list(dict.fromkeys(node.input[0] for node in quantizable_nodes(onnx_bytes)))


def quantize(onnx_bytes: bytes, reach: Reach, chosen: Collection[str]) -> bytes:
    """The same graph with Q/DQ pairs on the chosen nodes; `reach` tells the |x| that becomes 127."""
    model = read_model(onnx_bytes)
    editor = _Editor(model.graph)
    for node in model.graph.node:
        if node.name in chosen:
            node.input[0] = editor.quantized_activation(node.input[0], reach[node.input[0]])
            node.input[1] = editor.quantized_weight(node)
        editor.nodes.append(node)
    editor.finish()
    return write_model(model)


def _worth_quantizing(node: NodeProto, weights: Mapping[str, tuple[int, ...]]) -> bool:
    if node.op_type not in ("Conv", "Gemm", "MatMul") or len(node.input) < 2 or node.input[1] not in weights:
        return False
    # Ten of the twelve most sensitive nodes of MobileNetV3 are depthwise: the first costs 20 % of labels.
    return node.op_type != "Conv" or _attribute(node, "group", 1) == 1


def _attribute(node: NodeProto, name: str, default: int) -> int:
    found = [attribute.i for attribute in node.attribute if attribute.name == name]
    return int(found[0]) if found else default


class _Editor:
    """Collects new nodes and tensors; each activation and each weight is quantised once."""

    def __init__(self, graph: GraphProto) -> None:
        self.graph = graph
        self.weights = {tensor.name: tensor for tensor in graph.initializer}
        self.nodes: list[NodeProto] = []
        self.done: dict[str, str] = {}

    def quantized_activation(self, name: str, reach: float) -> str:
        def build() -> str:
            scale = self._scalar(f"{name}_scale", np.float32(max(reach, SMALLEST_RANGE) / LEVELS))
            zero = self._scalar(f"{name}_zero", np.int8(0))
            self._insert("QuantizeLinear", [name, scale, zero], f"{name}_q")
            return self._insert("DequantizeLinear", [f"{name}_q", scale, zero], f"{name}_dq")

        return self._once(name, build)

    def quantized_weight(self, node: NodeProto) -> str:
        name = node.input[1]
        axis = _output_axis(node)

        def build() -> str:
            values, scales = quantize_weight(numpy_helper.to_array(self.weights[name]), axis)
            self.graph.initializer.append(numpy_helper.from_array(values, f"{name}_q"))
            self.graph.initializer.append(numpy_helper.from_array(scales, f"{name}_scale"))
            zeros = numpy_helper.from_array(np.zeros(len(scales), np.int8), f"{name}_zero")
            self.graph.initializer.append(zeros)
            inputs = [f"{name}_q", f"{name}_scale", f"{name}_zero"]
            return self._insert("DequantizeLinear", inputs, f"{name}_dq", axis=axis)

        return self._once(name, build)

    def finish(self) -> None:
        """Put the nodes in place, and drop the float weights that nothing uses any more."""
        used = {name for node in self.nodes for name in node.input}
        tensors = [tensor for tensor in self.graph.initializer if tensor.name in used]
        nodes = [NodeProto.FromString(node.SerializeToString()) for node in self.nodes]
        self.graph.ClearField("node")
        self.graph.ClearField("initializer")
        self.graph.node.extend(nodes)
        self.graph.initializer.extend(tensors)

    def _once(self, name: str, build: Callable[[], str]) -> str:
        if name not in self.done:
            self.done[name] = build()
        return self.done[name]

    def _scalar(self, name: str, value: np.generic) -> str:
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def _insert(self, operator: str, inputs: list[str], output: str, axis: int | None = None) -> str:
        node = helper.make_node(operator, inputs, [output], output)
        if axis is not None:
            node.attribute.append(helper.make_attribute("axis", axis))
        self.nodes.append(node)
        return output


def quantize_weight(
    weight: npt.NDArray[np.float32], axis: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Symmetric per output channel: the largest |w| of a channel becomes 127."""
    others = tuple(dimension for dimension in range(weight.ndim) if dimension != axis)
    largest = np.maximum(np.abs(weight).max(axis=others), SMALLEST_RANGE)
    scales = (largest / LEVELS).astype(np.float32)
    shape = [-1 if dimension == axis else 1 for dimension in range(weight.ndim)]
    steps = np.rint(weight / scales.reshape(shape))
    return np.clip(steps, -LEVELS, LEVELS).astype(np.int8), scales


def _output_axis(node: NodeProto) -> int:
    if node.op_type == "Conv":
        return 0
    return 0 if _attribute(node, "transB", 0) else 1
