"""What an ONNX file must be like before any runtime is allowed to see it.

A runtime trusts its input too much: some versions read external data from any path, and a small
file can ask for gigabytes. Our own graphs need none of that, so it is refused here.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edge_road.errors import BackendError

if TYPE_CHECKING:
    import onnx

LARGEST_MODEL_BYTES = 256 * 2**20
MOST_NODES = 5_000
MOST_ELEMENTS = 64 * 2**20
"""of one tensor, for one image"""
MOST_SHAPE_NUMBERS = 64
"""a tensor of more numbers says nothing about the size of another"""
LARGEST_OPSET = 20
DOMAINS = ("", "ai.onnx")

# What classifiers are made of. Nothing with subgraphs, nothing that reads files or draws random
# numbers, nothing that makes a large tensor out of a small one.
_OPERATORS = """
    Abs Add AveragePool BatchNormalization Cast Clip Concat Constant Conv DequantizeLinear Div Elu Erf Exp
    Flatten Gather Gelu Gemm GlobalAveragePool HardSigmoid HardSwish Identity InstanceNormalization
    LayerNormalization LeakyRelu LogSoftmax MatMul Max MaxPool Min Mish Mul Neg PRelu Pad Pow
    QuantizeLinear Reciprocal ReduceMean ReduceSum Relu Reshape Shape Sigmoid Slice Softmax Softplus Split
    Sqrt Squeeze Sub Tanh Transpose Unsqueeze
"""
OPERATORS = frozenset(_OPERATORS.split())


@dataclass(frozen=True)
class OnnxFacts:
    """What the check learnt on its way."""

    opset: int
    ir_version: int
    operators: Counter[str]

    @property
    def quantized(self) -> bool:
        return "QuantizeLinear" in self.operators


def check_onnx(content: bytes, *, where: object = "the ONNX model") -> OnnxFacts:
    """Refuse, with a BackendError, whatever our own exporter would never write."""
    if len(content) > LARGEST_MODEL_BYTES:
        _refuse("is too large", where, f"{len(content)} bytes", f"at most {LARGEST_MODEL_BYTES}")
    model = _parse(content, where)
    opset = _check_domains(model, where)
    nodes = list(model.graph.node)
    if not 0 < len(nodes) <= MOST_NODES:
        _refuse("has no nodes or too many", where, len(nodes), f"1 to {MOST_NODES}")
    for node in nodes:
        _check_node(node, where)
    for tensor in _tensors(model):
        _check_tensor(tensor, where)
    _check_sizes(model, where)
    return OnnxFacts(opset, model.ir_version, Counter(node.op_type for node in nodes))


def _parse(content: bytes, where: object) -> onnx.ModelProto:
    import onnx

    try:
        model = onnx.ModelProto()
        model.ParseFromString(content)
    except MemoryError:  # says nothing of the model
        raise
    except Exception as error:  # protobuf's errors share no narrower base
        raise BackendError("not an ONNX model", where=where, got=str(error)[:200]) from None
    if not model.opset_import:
        _refuse("names no operator set", where, f"{len(content)} bytes", "an ONNX file")
    return model


def _check_domains(model: onnx.ModelProto, where: object) -> int:
    if foreign := sorted({o.domain for o in model.opset_import} - set(DOMAINS)):
        _refuse("uses custom operators", where, ", ".join(map(repr, foreign)), "the ONNX standard only")
    if model.functions or model.training_info:
        _refuse("carries functions or training steps", where, "functions", "a plain graph")
    if model.graph.sparse_initializer:
        _refuse("has sparse tensors", where, "sparse initializers", "dense tensors")
    opset = max(o.version for o in model.opset_import)
    if opset > LARGEST_OPSET:
        _refuse("is newer than vehicles can run", where, f"opset {opset}", f"opset {LARGEST_OPSET} or older")
    return int(opset)


def _check_node(node: onnx.NodeProto, where: object) -> None:
    if node.domain not in DOMAINS or node.op_type not in OPERATORS:
        got = f"{node.domain + '.' if node.domain else ''}{node.op_type}"
        raise BackendError(
            "the ONNX model uses an operator that is not allowed",
            where=where,
            got=got,
            expected="operators of plain classifiers",
            fix="export a network of such operators: another model.backbone",
        )
    for attribute in node.attribute:
        if attribute.HasField("g") or attribute.graphs:
            _refuse("has a graph inside a node", where, node.op_type, "a plain graph")
        if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
            _refuse("has sparse tensors", where, node.op_type, "dense tensors")
        if not all(map(math.isfinite, (attribute.f, *attribute.floats))):
            _refuse("has weights that are not numbers", where, f"{node.op_type} {attribute.name}", "numbers")


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from model.graph.initializer
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _check_tensor(tensor: onnx.TensorProto, where: object) -> None:
    import onnx

    name = tensor.name[:80]
    if tensor.data_type not in _data_types():
        _refuse("has a tensor of a strange type", where, f"{name!r}, type {tensor.data_type}", "numbers")
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        _refuse("keeps weights outside the file", where, f"external data of {name!r}", "everything inside")
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > MOST_ELEMENTS:
        _refuse("has an oversized tensor", where, f"{name!r} {list(tensor.dims)[:8]}", _limit())
    _check_values(tensor, where)


def _check_values(tensor: onnx.TensorProto, where: object) -> None:
    """As many numbers as the tensor says, and every one of them a number."""
    import numpy as np
    from onnx import numpy_helper

    name = tensor.name[:80]
    try:
        values = numpy_helper.to_array(tensor)
    except MemoryError:
        raise
    except Exception as error:  # the library's errors share no narrower base
        raise BackendError(
            "the ONNX model has a tensor that cannot be read", where=where, got=f"{name!r}: {error}"
        ) from None
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        _refuse("has weights that are not numbers", where, f"NaN or infinity in {name!r}", "finite weights")


@functools.lru_cache(maxsize=1)
def _data_types() -> frozenset[int]:
    """No strings, which would be bytes of any length, and none of the types that no classifier has."""
    from onnx import TensorProto as T

    return frozenset({T.FLOAT, T.FLOAT16, T.DOUBLE, T.INT8, T.UINT8, T.INT32, T.INT64, T.BOOL})


def _check_sizes(model: onnx.ModelProto, where: object) -> None:
    """No tensor on the way may be large either, and the size of each can be told without running."""
    import onnx

    try:
        one_image = _for_one_image(model)
        graph = onnx.shape_inference.infer_shapes(one_image, strict_mode=True, data_prop=True).graph
    except MemoryError:
        raise
    except Exception as error:  # the library's errors share no narrower base
        raise BackendError(
            "the shapes of the ONNX model do not fit together", where=where, got=str(error)[:1000]
        ) from None
    known = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info, *graph.output)}
    for name in (name for node in graph.node for name in node.output if name):
        sizes = [d.dim_value for d in known[name].shape.dim] if name in known else [0]
        if min(sizes, default=1) < 1 or (name in known and not known[name].HasField("shape")):
            _refuse("makes a tensor whose size cannot be told", where, f"{name[:80]!r}", "fixed sizes")
        if math.prod(sizes) > MOST_ELEMENTS:
            _refuse("makes an oversized tensor", where, f"{name[:80]!r} {sizes[:8]}", _limit())


def _for_one_image(model: onnx.ModelProto) -> onnx.ModelProto:
    """With a batch of 1 every size is a number; what the file claims of its inner tensors is dropped.

    Large weights become inputs of their size: sizes never depend on them, and copies would cost memory.
    """
    import onnx

    one_image = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    graph = one_image.graph
    graph.name = model.graph.name
    for part in ("node", "input", "output"):
        getattr(graph, part).extend(getattr(model.graph, part))
    for value in (*graph.input, *graph.output):
        sizes = value.type.tensor_type.shape.dim
        if len(sizes) > 0 and sizes[0].dim_value < 1:
            sizes[0].dim_value = 1
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= MOST_SHAPE_NUMBERS:
            graph.initializer.append(tensor)
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return one_image


def _limit() -> str:
    return f"at most {MOST_ELEMENTS} numbers"


def _refuse(what: str, where: object, got: object, expected: object) -> None:
    raise BackendError(f"the ONNX model {what}", where=where, got=got, expected=expected)
