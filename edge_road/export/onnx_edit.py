"""Small edits of ONNX bytes: what no exporter should leave in, and what only we put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from edge_road.errors import EdgeRoadError

TEMPERATURE = "temperature"
"""the initializer that divides the logits before the softmax"""


def read_model(content: bytes) -> ModelProto:
    return onnx.load_model_from_string(content)


def write_model(model: ModelProto) -> bytes:
    """The same model gives the same bytes."""
    return bytes(model.SerializeToString(deterministic=True))


def put_nodes(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    """Replace the nodes of a graph, and drop the tensors that none of them reads."""
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    used = {name for node in copies for name in node.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    graph.ClearField("node")
    graph.ClearField("initializer")
    graph.node.extend(copies)
    graph.initializer.extend(tensors)


def make_anonymous(model: ModelProto) -> None:
    """Drop stack traces (they hold absolute paths), doc strings and run-dependent node names."""
    model.doc_string = model.graph.doc_string = ""
    model.graph.name = "road"
    model.graph.ClearField("metadata_props")
    del model.graph.value_info[:]
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
        node.doc_string = ""
        node.ClearField("metadata_props")
    for named in (*model.graph.initializer, *model.graph.input, *model.graph.output):
        named.doc_string = ""
        named.ClearField("metadata_props")


def set_metadata(model: ModelProto, entries: Mapping[str, str]) -> None:
    onnx.helper.set_model_props(model, dict(sorted(entries.items())))


def with_temperature(content: bytes, temperature: float) -> bytes:
    """The same graph with another temperature; weights and logits stay as they are."""
    model = read_model(content)
    for tensor in model.graph.initializer:
        if tensor.name == TEMPERATURE:
            tensor.CopyFrom(numpy_helper.from_array(np.array(temperature, np.float32), TEMPERATURE))
            return write_model(model)
    raise EdgeRoadError(f"the graph has no initializer '{TEMPERATURE}'")
