"""The inspector's report, as different versions word it."""

from __future__ import annotations

import json

import pytest

from edge_road.backends.engine_layers import Layer, layer_types, read_layers

LAYERS = [
    {
        "Name": "Conv_3 + HardSwish_4",
        "LayerType": "CaskConvolution",
        "Inputs": [{"Format/Datatype": "Int8 NC/32HW32"}, {"Format/Datatype": "Float"}],
        "Metadata": "[ONNX Layer: Conv_3]\x1e[ONNX Layer: HardSwish_4]",
    },
    {"Name": "b", "Inputs": [{"Format/Datatype": "Row major linear FP16 format"}]},
    {"Name": "c", "Inputs": [{"Datatype": "Half"}]},
    {"Name": "d", "Inputs": [{"Format/Datatype": "Float"}]},
    {"Name": "e"},
    "a name only",
]


def test_every_layer_tells_its_type_and_its_nodes() -> None:
    first, *_ = read_layers(json.dumps({"Layers": LAYERS}))
    assert first == Layer("Conv_3 + HardSwish_4", "CaskConvolution", "int8", ("Conv_3", "HardSwish_4"))
    assert layer_types(json.dumps({"Layers": LAYERS})) == {"int8": 1, "float16": 2, "float32": 1, "other": 1}


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[]", '{"Layers": []}', '{"Layers": ["a"]}'])
def test_a_report_that_says_nothing_is_no_layers(text: str) -> None:
    assert read_layers(text) == []
