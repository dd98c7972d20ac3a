"""What an engine really computes in: its own inspector's words, read layer by layer."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

_TYPES = (("int8", r"int8"), ("float16", r"half|fp16"), ("float32", r"float|fp32"))
_ONNX_NODE = re.compile(r"\[ONNX Layer: ([^\]]+)\]")


@dataclass(frozen=True)
class Layer:
    name: str
    kind: str
    data_type: str
    """of its first input: what it computes in"""
    onnx_nodes: tuple[str, ...]


def read_layers(information: str) -> list[Layer]:
    """From the JSON of `get_engine_information`; what cannot be read is left out."""
    try:
        layers = json.loads(information)["Layers"]
    except (ValueError, KeyError, TypeError):
        return []
    # Built without detailed verbosity, an engine names its layers and nothing more.
    return [_layer(layer) for layer in layers if isinstance(layer, dict)]


def layer_types(information: str) -> dict[str, int]:
    """Data type -> number of layers."""
    return dict(Counter(layer.data_type for layer in read_layers(information)))


def _layer(values: dict[str, Any]) -> Layer:
    inputs = values.get("Inputs")
    text = json.dumps(inputs[:1] if isinstance(inputs, list) else []).lower()
    data_type = next((name for name, pattern in _TYPES if re.search(pattern, text)), "other")
    nodes = tuple(_ONNX_NODE.findall(str(values.get("Metadata", ""))))
    return Layer(str(values.get("Name", "")), str(values.get("LayerType", "")), data_type, nodes)
