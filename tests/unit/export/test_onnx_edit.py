"""What is taken out of an exported graph, and what is put in."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_onnx import SIZE, conv_bytes, conv_graph, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import EdgeRoadError
from edge_road.export.onnx_edit import make_anonymous, read_model, set_metadata, with_temperature, write_model


def test_paths_of_the_exporting_machine_are_removed_everywhere() -> None:
    model = conv_graph()
    secret = "/home/someone/project/model.py"
    model.doc_string = model.graph.doc_string = model.graph.node[0].doc_string = secret
    for holder in (model.graph, model.graph.node[1], model.graph.initializer[0], model.graph.input[0]):
        holder.metadata_props.add(key="stack_trace", value=secret)
    model.graph.input[0].doc_string = secret
    make_anonymous(model)
    assert b"/home/" not in write_model(model)


def test_node_names_depend_on_the_graph_alone() -> None:
    model = conv_graph()
    for node in model.graph.node:
        node.name = f"random_{id(node)}"
    make_anonymous(model)
    assert [node.name for node in model.graph.node][:4] == ["Cast_0", "Transpose_1", "Div_2", "Conv_3"]


def test_a_new_temperature_changes_probabilities_and_nothing_else() -> None:
    images_NHWC = noise_images(3)
    before = OnnxPredictor(conv_bytes(), ROAD_CLASSES, SIZE, name="before").predict(images_NHWC)
    content = with_temperature(conv_bytes(), 0.5)
    after = OnnxPredictor(content, ROAD_CLASSES, SIZE, name="after").predict(images_NHWC)
    np.testing.assert_array_equal(before.logits_NC, after.logits_NC)
    powers_NC = np.exp(after.logits_NC / 0.5)
    np.testing.assert_allclose(after.probabilities_NC, powers_NC / powers_NC.sum(1, keepdims=True), atol=1e-6)


def test_a_graph_without_a_temperature_is_our_bug() -> None:
    model = conv_graph()
    del model.graph.initializer[1]
    with pytest.raises(EdgeRoadError, match="temperature"):
        with_temperature(write_model(model), 1.0)


def test_metadata_is_written_in_one_order() -> None:
    first, second = conv_graph(), conv_graph()
    set_metadata(first, {"b": "2", "a": "1"})
    set_metadata(second, {"a": "1", "b": "2"})
    assert write_model(first) == write_model(second)
    assert [entry.key for entry in read_model(write_model(first)).metadata_props] == ["a", "b"]
