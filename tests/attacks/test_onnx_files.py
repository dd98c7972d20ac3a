"""Hostile ONNX files: each is refused before any runtime sees it, with the reason named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from fault_rows import FaultRow
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper
from tiny_onnx import SIZE, conv_bytes, conv_graph

from edge_road.backends import onnx_check
from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import BackendError

Damage = Callable[[ModelProto], None]


def external(location: str) -> Damage:
    def damage(model: ModelProto) -> None:
        tensor = model.graph.initializer[2]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensor.external_data.add(key="length", value=str(2**62))

    return damage


def hidden_external(model: ModelProto) -> None:
    """In a node's attribute, and without the flag that says so."""
    constant = helper.make_node("Constant", [], ["extra"], "Constant_0")
    tensor = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[4])
    tensor.external_data.add(key="location", value="/etc/passwd")
    constant.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor))
    model.graph.node.insert(0, constant)


def injected_attributes(model: ModelProto) -> None:
    """Keys that a careless reader sets as attributes of its own objects."""
    tensor = model.graph.initializer[2]
    for key in ("__class__", "location", "checksum", "basepath", "offset"):
        tensor.external_data.add(key=key, value="/proc/self/environ")


def sparse_attribute(model: ModelProto) -> None:
    """External data where only sparse constants are looked for."""
    constant = helper.make_node("Constant", [], ["extra"], "Constant_0")
    attribute = AttributeProto(name="sparse_value", type=AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.external_data.add(key="location", value="/etc/passwd")
    constant.attribute.append(attribute)
    model.graph.node.insert(0, constant)


def custom_operator(model: ModelProto) -> None:
    model.graph.node[3].domain = "com.evil"


def custom_opset(model: ModelProto) -> None:
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def foreign_operator(model: ModelProto) -> None:
    model.graph.node[4].op_type = "RandomNormalLike"


def subgraph(model: ModelProto) -> None:
    inner = helper.make_graph([helper.make_node("Identity", ["features"], ["y"])], "inner", [], [])
    model.graph.node[4].attribute.append(helper.make_attribute("body", inner))


def function(model: ModelProto) -> None:
    model.functions.add(name="f", domain="")


def sparse(model: ModelProto) -> None:
    model.graph.sparse_initializer.add()


def huge_tensor(model: ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="huge", data_type=TensorProto.FLOAT, dims=[10**5, 10**5]))


def billion_elements(model: ModelProto) -> None:
    """A billion numbers that would have to be reserved, and eight bytes of them in the file."""
    tensor = TensorProto(name="vast", data_type=TensorProto.FLOAT, dims=[10**9], raw_data=bytes(8))
    model.graph.initializer.append(tensor)


def short_tensor(model: ModelProto) -> None:
    model.graph.initializer[2].raw_data = model.graph.initializer[2].raw_data[:-4]


def text_tensor(model: ModelProto) -> None:
    model.graph.initializer.append(helper.make_tensor("text", TensorProto.STRING, [1], [b"x" * 10_000]))


def not_a_number(value: float) -> Damage:
    def damage(model: ModelProto) -> None:
        weights = numpy_helper.to_array(model.graph.initializer[2]).copy()
        weights.flat[7] = value
        model.graph.initializer[2].CopyFrom(numpy_helper.from_array(weights, "stem"))

    return damage


def half_infinity(model: ModelProto) -> None:
    values = np.array([1.0, np.inf], np.float16)
    model.graph.initializer.append(numpy_helper.from_array(values, "half"))


def hidden_nan(model: ModelProto) -> None:
    constant = helper.make_node("Constant", [], ["extra"], "Constant_0", value_floats=[0.0])
    constant.attribute[0].CopyFrom(
        helper.make_attribute("value", numpy_helper.from_array(np.float32([np.nan]), "n"))
    )
    model.graph.node.insert(0, constant)


def bare_nan(model: ModelProto) -> None:
    """Among the plain numbers of an attribute, where no tensor is."""
    model.graph.node.insert(
        0, helper.make_node("Constant", [], ["extra"], "Constant_0", value_floats=[np.nan])
    )


def negative_tensor(model: ModelProto) -> None:
    model.graph.initializer.append(TensorProto(name="less", data_type=TensorProto.FLOAT, dims=[-5]))


def doubling_chain(model: ModelProto) -> None:
    """Small in the file, 2^40 numbers when it runs."""
    last = "e"
    for step in range(40):
        model.graph.node.insert(
            8 + step, helper.make_node("Concat", [last, last], [f"twice{step}"], f"Concat_{step}", axis=2)
        )
        last = f"twice{step}"
    model.graph.node[48].input[0] = last


def doubling_batch(model: ModelProto) -> None:
    """The same along the batch, whose size the file leaves open."""
    doubling_chain(model)
    for node in model.graph.node:
        if node.op_type == "Concat":
            node.attribute[0].i = 0


def size_from_the_picture(model: ModelProto) -> None:
    """How far to pad is computed while it runs, from what the camera sees."""
    model.graph.node.insert(
        8, helper.make_node("Cast", ["seen"], ["pads"], "Cast_pads", to=TensorProto.INT64)
    )
    model.graph.node.insert(8, helper.make_node("ReduceMean", ["e"], ["mean"], "Mean", keepdims=0))
    model.graph.node.insert(9, helper.make_node("Concat", ["eight"] * 8, ["seen"], "Concat_8", axis=0))
    model.graph.node.insert(9, helper.make_node("Reshape", ["mean", "one"], ["eight"], "Reshape_1"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    model.graph.node.insert(12, helper.make_node("Pad", ["e", "pads"], ["padded"], "Pad_0"))
    model.graph.node[13].input[0] = "padded"


def too_many_nodes(model: ModelProto) -> None:
    model.graph.node.extend(
        helper.make_node("Relu", ["features"], [f"r{n}"]) for n in range(onnx_check.MOST_NODES)
    )


def no_nodes(model: ModelProto) -> None:
    del model.graph.node[:]


def newer_opset(model: ModelProto) -> None:
    model.opset_import[0].version = 21


def misfit_shapes(model: ModelProto) -> None:
    model.graph.initializer[2].CopyFrom(numpy_helper.from_array(np.zeros((2, 2), np.float32), "stem"))


HOSTILE = [
    (external("../weights.bin"), "outside the file"),
    (external("/etc/passwd"), "outside the file"),
    (hidden_external, "outside the file"),
    (injected_attributes, "outside the file"),
    (sparse_attribute, "sparse"),
    (custom_operator, "not allowed"),
    (custom_opset, "custom operators"),
    (foreign_operator, "not allowed"),
    (subgraph, "graph inside a node"),
    (function, "functions"),
    (sparse, "sparse"),
    (huge_tensor, "oversized"),
    (billion_elements, "oversized"),
    (short_tensor, "cannot be read"),
    (text_tensor, "strange type"),
    (not_a_number(np.nan), "not numbers"),
    (not_a_number(-np.inf), "not numbers"),
    (half_infinity, "not numbers"),
    (hidden_nan, "not numbers"),
    (bare_nan, "not numbers"),
    (negative_tensor, "oversized"),
    (doubling_chain, "oversized"),
    (doubling_batch, "fit together"),
    (size_from_the_picture, "cannot be told"),
    (too_many_nodes, "too many"),
    (no_nodes, "no nodes"),
    (newer_opset, "newer than vehicles"),
    (misfit_shapes, "fit together"),
]
OUTSIDE = ("outside the file",)
"""of row 17; the others belong to row 18"""


@pytest.mark.parametrize(("damage", "reason"), HOSTILE)
def test_a_hostile_model_never_reaches_the_runtime(
    damage: Damage, reason: str, monkeypatch: pytest.MonkeyPatch, fault_row: FaultRow
) -> None:
    def must_not_open(*_: object, **__: object) -> None:
        raise AssertionError("the runtime saw the model")

    monkeypatch.setattr(onnxruntime, "InferenceSession", must_not_open)
    model = conv_graph()
    damage(model)
    with pytest.raises(BackendError, match=reason):
        OnnxPredictor(model.SerializeToString(), ROAD_CLASSES, SIZE, name="hostile")
    row = 17 if reason in OUTSIDE else 18
    count = sum((other in OUTSIDE) == (row == 17) for _, other in HOSTILE)
    what = (
        "weights named outside the file, in four ways" if row == 17 else "operators, graphs, tensors, sizes"
    )
    note = f"{count} crafted models refused before the runtime sees them"
    fault_row(row, what, state="-", how="in process", note=note)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_external_data_is_refused_though_the_file_is_there(
    link: Callable[[Path, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A symbolic or a hard link to a readable secret, named by a model that lies beside it."""
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(6 * 27 * 4))
    link(secret, tmp_path / "weights.bin")
    monkeypatch.chdir(tmp_path)
    model = conv_graph()
    external("weights.bin")(model)
    with pytest.raises(BackendError, match="outside the file"):
        check_onnx(model.SerializeToString())


def test_a_file_above_the_size_limit_is_not_even_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_check, "LARGEST_MODEL_BYTES", 100)
    with pytest.raises(BackendError, match="too large"):
        check_onnx(conv_bytes())


def field(number: int, content: bytes) -> bytes:
    """One length-delimited field of a protobuf message."""
    length, size = b"", len(content)
    while size >= 128:
        length, size = length + bytes([size % 128 + 128]), size // 128
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


@pytest.mark.parametrize("depth", [1, 20, 300, 20_000])
def test_a_bomb_of_nested_graphs_is_refused(depth: int) -> None:
    graph = b""
    for _ in range(depth):
        graph = field(1, field(5, field(6, graph)))  # a node with an attribute that is a graph
    with pytest.raises(BackendError, match=r"not an ONNX model|not allowed"):
        check_onnx(conv_bytes() + field(7, graph))


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"PK\x03\x04", b"not a model" * 50])
def test_what_is_no_onnx_file_is_refused(content: bytes) -> None:
    with pytest.raises(BackendError):
        check_onnx(content)


def test_a_model_cut_anywhere_is_refused() -> None:
    content = conv_bytes()
    for length in range(0, len(content) - 1, max(1, len(content) // 100)):
        with pytest.raises(BackendError):
            OnnxPredictor(content[:length], ROAD_CLASSES, SIZE, name="cut")


@settings(max_examples=150, deadline=None)
@given(position=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_changed_byte_is_refused_or_harmless_but_never_a_crash(position: float, flip: int) -> None:
    content = bytearray(conv_bytes())
    content[int(position * len(content))] ^= flip
    try:
        predictor = OnnxPredictor(bytes(content), ROAD_CLASSES, SIZE, name="changed")
        predictor.predict(np.zeros((1, *SIZE, 3), np.uint8))
    except BackendError:
        pass


def test_our_own_graph_passes_and_tells_its_facts() -> None:
    facts = check_onnx(conv_bytes())
    assert (facts.opset, facts.ir_version, facts.quantized) == (18, 10, False)
    assert facts.operators["Conv"] == 3
