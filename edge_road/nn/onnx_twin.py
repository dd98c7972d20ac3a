"""An exported float graph, computed by torch node by node, with INT8 layers where they are wanted.

Quantisation-aware training on the very graph that ships: batch norm is folded already, the names are those of
the file, and nothing has to be matched afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from edge_road.errors import BackendError
from edge_road.nn.fake_int8 import FakeInt8, LayerValues

Attributes = Mapping[str, Any]
Operator = Callable[[Sequence[Any], Attributes], Any]


class OnnxTwin(nn.Module):
    """uint8 NHWC images to (logits, features); `layers` are INT8, by node name."""

    def __init__(self, onnx_bytes: bytes, layers: Mapping[str, LayerValues]) -> None:
        super().__init__()
        import onnx

        graph = onnx.load_model_from_string(onnx_bytes).graph
        self.nodes = [_Node(node, onnx.helper.get_attribute_value) for node in graph.node]
        self.input_name = graph.input[0].name
        self.constants = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in graph.initializer}
        self.log_scales = nn.ParameterDict()
        self.layers = nn.ModuleDict()
        _refuse_unknown(self.nodes)
        for node in self.nodes:
            if node.name in layers:
                self.layers[node.name] = self._layer(layers[node.name], node.operator == "Conv")

    def forward(self, images_NHWC: Tensor) -> tuple[Tensor, Tensor]:
        tensors: dict[str, Tensor] = {**self.constants, self.input_name: images_NHWC}
        for node in self.nodes:
            inputs = [tensors[name] if name else None for name in node.inputs]
            if node.name in self.layers:
                layer = self.layers[node.name]
                assert isinstance(layer, FakeInt8)
                inputs = [
                    layer.quantized_input(tensors[node.inputs[0]]),
                    layer.quantized_weight(),
                    layer.bias,
                ]
            results: Any = OPERATORS[node.operator](inputs, node.attributes)
            tensors.update(zip(node.outputs, results if isinstance(results, tuple) else (results,)))
        return tensors["logits"], tensors["features"]

    def learnt(self) -> dict[str, LayerValues]:
        return {name: layer.learnt() for name, layer in self.layers.items() if isinstance(layer, FakeInt8)}

    def _layer(self, values: LayerValues, channels_first: bool) -> FakeInt8:
        key = values.input_name.replace(".", "/")  # ParameterDict takes dots for nesting
        if key not in self.log_scales:
            self.log_scales[key] = nn.Parameter(torch.tensor(values.input_scale).log())
        return FakeInt8(values, self.log_scales[key], channels_first)


class _Node:
    def __init__(self, node: Any, value_of: Callable[[Any], Any]) -> None:
        self.name, self.operator = node.name, node.op_type
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes = {attribute.name: value_of(attribute) for attribute in node.attribute}


def _refuse_unknown(nodes: Sequence[_Node]) -> None:
    if unknown := sorted({node.operator for node in nodes} - OPERATORS.keys()):
        raise BackendError(
            "this graph cannot be trained with INT8 in it",
            got=", ".join(unknown),
            expected="operators among " + ", ".join(sorted(OPERATORS)),
            fix='quantization = "mixed" needs no training',
        )


def _conv(inputs: Sequence[Any], options: Attributes) -> Tensor:
    images, weight, bias = (*inputs, None)[:3]
    top, left, bottom, right = options.get("pads", (0, 0, 0, 0))
    if (top, left) != (bottom, right):
        images, top, left = functional.pad(images, (left, right, top, bottom)), 0, 0
    strides, dilations = options.get("strides", (1, 1)), options.get("dilations", (1, 1))
    group = options.get("group", 1)
    return functional.conv2d(images, weight, bias, tuple(strides), (top, left), tuple(dilations), group)


def _gemm(inputs: Sequence[Any], options: Attributes) -> Tensor:
    rows, weight, bias = (*inputs, None)[:3]
    return functional.linear(rows, weight if options.get("transB") else weight.T, bias)


def _hard_sigmoid(inputs: Sequence[Any], options: Attributes) -> Tensor:
    line: Tensor = options.get("alpha", 0.2) * inputs[0] + options.get("beta", 0.5)
    return line.clamp(0.0, 1.0)


def _mean(inputs: Sequence[Any], options: Attributes) -> Tensor:
    axes = inputs[1].tolist() if len(inputs) > 1 else options["axes"]
    result: Tensor = inputs[0].mean(dim=tuple(axes), keepdim=bool(options.get("keepdims", 1)))
    return result


def _max_pool(inputs: Sequence[Any], options: Attributes) -> Tensor:
    top, left, bottom, right = options.get("pads", (0, 0, 0, 0))
    padded = functional.pad(inputs[0], (left, right, top, bottom), value=float("-inf"))
    return functional.max_pool2d(
        padded, tuple(options["kernel_shape"]), tuple(options.get("strides", (1, 1)))
    )


def _reshape(inputs: Sequence[Any], options: Attributes) -> Tensor:
    sizes = [inputs[0].shape[i] if size == 0 else size for i, size in enumerate(inputs[1].tolist())]
    result: Tensor = inputs[0].reshape(sizes)
    return result


OPERATORS: dict[str, Operator] = {
    "Add": lambda x, _: x[0] + x[1],
    "Cast": lambda x, _: x[0].float(),
    "Clip": lambda x, _: x[0].clamp(*x[1:]),
    "Concat": lambda x, options: torch.cat(list(x), dim=options["axis"]),
    "Conv": _conv,
    "Div": lambda x, _: x[0] / x[1],
    "Flatten": lambda x, options: x[0].flatten(options.get("axis", 1)),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x, _: x[0].mean(dim=(2, 3), keepdim=True),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda x, _: functional.hardswish(x[0]),
    "Identity": lambda x, _: x[0],
    "LogSoftmax": lambda x, options: x[0].log_softmax(options.get("axis", -1)),
    "MatMul": lambda x, _: x[0] @ x[1],
    "MaxPool": _max_pool,
    "Mul": lambda x, _: x[0] * x[1],
    "ReduceMean": _mean,
    "Relu": lambda x, _: x[0].relu(),
    "Reshape": _reshape,
    "Sigmoid": lambda x, _: x[0].sigmoid(),
    "Softmax": lambda x, options: x[0].softmax(options.get("axis", -1)),
    "Split": lambda x, options: tuple(x[0].split(x[1].tolist(), dim=options.get("axis", 0))),
    "Sub": lambda x, _: x[0] - x[1],
    "Transpose": lambda x, options: x[0].permute(*options["perm"]),
}
