"""The same graph in float16: half the bytes, and what a GPU computes without INT8.

Written here because NVIDIA's converter asks for other versions of ONNX and ONNX Runtime than vehicles
have. The rules are few: preprocessing and softmax stay in float32, as do inputs and outputs, what rounds
to INT8, and every layer whose weights or activations leave the range of float16; a Cast stands wherever
both kinds meet.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from edge_road.export.onnx_edit import TEMPERATURE, put_nodes, read_model, write_model

LARGEST = 16384.0
"""of |x|: a quarter of float16's 65504, because a vehicle meets more than was calibrated"""
QDQ_OPSET = 19
"""the first whose DequantizeLinear gives float16; ONNX Runtime 1.18 and TensorRT 10.3 know it"""
_LAYERS = ("Conv", "Gemm", "MatMul", "QuantizeLinear", "DequantizeLinear")
_SUFFIX: dict[int, str] = {TensorProto.FLOAT: "_f32", TensorProto.FLOAT16: "_f16"}


def to_float16(onnx_bytes: bytes, largest: Mapping[str, float]) -> bytes:
    """`largest` tells the |x| seen in the tensors that are known; others are taken to be in range."""
    model = read_model(onnx_bytes)
    if any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        _require_opset(model, QDQ_OPSET)
    _Converter(model.graph, _float32_nodes(model.graph, largest)).convert()
    return write_model(model)


def _float32_nodes(graph: GraphProto, largest: Mapping[str, float]) -> set[str]:
    """What comes before the first layer, what comes after the logits, and what leaves the range."""
    weights = {tensor.name: tensor for tensor in graph.initializer}
    after_layer: set[str] = set()
    after_temperature: set[str] = {TEMPERATURE}
    kept = set()
    for node in graph.node:
        if node.op_type in _LAYERS or after_layer.intersection(node.input):
            after_layer.update(node.output)
        else:
            kept.add(node.name)
        if after_temperature.intersection(node.input):
            after_temperature.update(node.output)
            kept.add(node.name)
        if any(largest.get(name, 0.0) > LARGEST for name in (*node.input, *node.output)):
            kept.add(node.name)
        if any(_beyond_range(weights[name]) for name in node.input if name in weights):
            kept.add(node.name)
        if node.op_type == "QuantizeLinear":  # ONNX Runtime below 1.30 truncates float16 here
            kept.add(node.name)
    return kept


def _beyond_range(tensor: TensorProto) -> bool:
    if tensor.data_type != TensorProto.FLOAT:
        return False
    values = numpy_helper.to_array(tensor)
    return bool(values.size) and float(np.abs(values).max()) > LARGEST


def _require_opset(model: ModelProto, version: int) -> None:
    """Nothing that our graphs use changed its meaning between the operator sets 18 and 19."""
    for opset in model.opset_import:
        opset.version = max(opset.version, version)


class _Converter:
    """Walks the graph once; remembers in which type each tensor exists."""

    def __init__(self, graph: GraphProto, float32_nodes: set[str]) -> None:
        self.graph = graph
        self.float32_nodes = float32_nodes
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.type_of = {name: tensor.data_type for name, tensor in self.tensors.items()}
        self.type_of |= {value.name: value.type.tensor_type.elem_type for value in graph.input}
        self.outputs = {value.name for value in graph.output}
        self.made: dict[tuple[str, int], str] = {}
        self.nodes: list[NodeProto] = []

    def convert(self) -> None:
        for node in list(self.graph.node):
            kind = TensorProto.FLOAT if node.name in self.float32_nodes else TensorProto.FLOAT16
            for position, name in enumerate(node.input):
                if self.type_of.get(name) in _SUFFIX:
                    node.input[position] = self._as(name, kind)
            self.nodes.append(node)
            for position, name in enumerate(node.output):
                node.output[position] = self._declare(node, name, kind)
        put_nodes(self.graph, self.nodes)

    def _declare(self, node: NodeProto, name: str, kind: int) -> str:
        """The type that comes out; an output of the graph keeps its name, as float32."""
        if node.op_type in ("QuantizeLinear", "Shape"):
            self.type_of[name] = TensorProto.UNDEFINED
            return name
        inner = name
        if kind == TensorProto.FLOAT16 and name in self.outputs:
            inner = name + _SUFFIX[TensorProto.FLOAT16]
            self.nodes.append(_cast(inner, name, TensorProto.FLOAT))
            self.made[name, TensorProto.FLOAT16] = inner
            self.type_of[name] = TensorProto.FLOAT
            return inner
        self.type_of[name] = kind
        return inner

    def _as(self, name: str, kind: int) -> str:
        if not name or self.type_of[name] == kind:
            return name
        if (name, kind) not in self.made:
            self.made[name, kind] = self._convert_one(name, kind)
        return self.made[name, kind]

    def _convert_one(self, name: str, kind: int) -> str:
        converted = name + _SUFFIX[kind]
        if name in self.tensors:
            values = numpy_helper.to_array(self.tensors[name])
            wanted = helper.tensor_dtype_to_np_dtype(kind)
            self.graph.initializer.append(numpy_helper.from_array(values.astype(wanted), converted))
        else:
            self.nodes.append(_cast(name, converted, kind))
        return converted


def _cast(source: str, result: str, kind: int) -> NodeProto:
    return helper.make_node("Cast", [source], [result], f"Cast_{result}", to=kind)
