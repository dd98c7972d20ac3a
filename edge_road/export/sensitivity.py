"""Which layers suffer most from INT8: each one is quantised alone and the logits are compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ClassList
from edge_road.export.quantize import quantizable_nodes, quantize
from edge_road.frames import Floats, Images


def least_sensitive(
    onnx_bytes: bytes, reach: Mapping[str, float], classes: ClassList, images_NHWC: Images, keep_float: int
) -> list[str]:
    """The nodes to quantise: all that can be but the `keep_float` most sensitive, in graph order."""
    names = [node.name for node in quantizable_nodes(onnx_bytes)]
    if keep_float == 0:
        return names
    reference_NC = _logits(onnx_bytes, classes, images_NHWC)
    damage = {
        name: float(
            np.abs(_logits(quantize(onnx_bytes, reach, {name}), classes, images_NHWC) - reference_NC).mean()
        )
        for name in names
    }
    kept = set(sorted(names, key=lambda name: damage[name], reverse=True)[:keep_float])
    return [name for name in names if name not in kept]


def _logits(onnx_bytes: bytes, classes: ClassList, images_NHWC: Images) -> Floats:
    size = (images_NHWC.shape[1], images_NHWC.shape[2])
    return OnnxPredictor(onnx_bytes, classes, size, name="sensitivity").predict(images_NHWC).logits_NC
