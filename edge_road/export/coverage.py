"""Were the INT8 scales made for the road? Judged on pictures of it, whatever the model was calibrated with.

Scales of another world (random images, a covered camera) are too small and clip, or too large and waste
levels. Either shows in one figure for each quantised tensor: the squared error of its Q/DQ pair on road
pictures, as a multiple of the error that the best scale for these pictures would leave.
"""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, numpy_helper

from edge_road.export.calibration import sample_activations
from edge_road.export.onnx_edit import read_model
from edge_road.export.reach import LEVELS, reach
from edge_road.frames import Floats, Images

_LEAST_ERROR = 1e-20
"""of a tensor that is never anything but zero"""
_LEAST_SCALE = 1e-12
"""a scale of zero, as others write it for a dead tensor, clips everything"""


def excess_noise(onnx_bytes: bytes, images_NHWC: Images) -> float | None:
    """The geometric mean over all quantised activations; 1 is the least, none without any."""
    scales = _activation_scales(read_model(onnx_bytes).graph)
    if not scales:
        return None
    activations = sample_activations(onnx_bytes, list(scales), images_NHWC)
    ratios = [excess_of(activations[name].samples_SC, scale) for name, scale in scales.items()]
    return float(np.exp(np.mean(np.log(ratios))))


def excess_of(values: Floats, scale: float) -> float:
    values = values.astype(np.float32)
    best = reach(values, float(np.abs(values).max()), "mse", 100.0) / LEVELS
    errors = [max(_error(values, max(step, _LEAST_SCALE)), _LEAST_ERROR) for step in (scale, best)]
    return max(1.0, errors[0] / errors[1])


def _error(values: Floats, scale: float) -> float:
    rounded = np.clip(np.rint(values / scale), -LEVELS, LEVELS) * scale
    return float(np.square(values - rounded, dtype=np.float64).mean())


def _activation_scales(graph: GraphProto) -> dict[str, float]:
    """What is quantised while the model runs, each tensor with its step; stored weights are INT8 already."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in tensors:
            scale = numpy_helper.to_array(tensors[node.input[1]])
            found[node.input[0]] = float(scale.ravel()[0])
    return found
