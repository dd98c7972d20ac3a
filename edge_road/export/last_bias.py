"""The last bias of an INT8 network: it takes out the mean error, and leans to ice where INT8 cannot tell.

Layers are fitted one by one, and what each leaves adds up. Its mean is small, but not the same for every
class, nor for images near the fence between ice and the rest; it goes into the bias. What remains is noise,
which turns the answer of images near the fence either way. Ice that is not told of is worse than a false
alarm, so the logits of ice get a share of that noise.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, TensorProto, numpy_helper

from edge_road.conditions import ClassList
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.sensitivity import logits_of
from edge_road.frames import Floats, Images

LEAN = 0.75
"""standard deviations of the noise: the fewest quarters with which none of ten models missed more ice than
its float model on perturbed validation images; their accuracy rose a little with it"""
FARTHEST = 0.3
"""most that the logits of ice move beyond the mean; road models ask for 0.1 to 0.27, broken ones for more"""


def with_fitted_bias(float_bytes: bytes, int8_bytes: bytes, classes: ClassList, images_NHWC: Images) -> bytes:
    """The INT8 model with another last bias, if it ends in a layer that has one."""
    model = read_model(int8_bytes)
    if (tensor := _last_bias(model.graph)) is None:
        return int8_bytes
    wanted_NC, got_NC = (logits_of(content, classes, images_NHWC) for content in (float_bytes, int8_bytes))
    if not (np.isfinite(wanted_NC).all() and np.isfinite(got_NC).all()):
        return int8_bytes  # broken elsewhere, which the gate will say
    bias_C = numpy_helper.to_array(tensor)
    fitted_C = (bias_C + correction(wanted_NC, got_NC, np.array(classes.states) == "icy")).astype(
        bias_C.dtype
    )
    tensor.CopyFrom(numpy_helper.from_array(fitted_C, tensor.name))
    return write_model(model)


def correction(wanted_NC: Floats, got_NC: Floats, icy_C: npt.NDArray[np.bool_]) -> Floats:
    """What to add to each logit."""
    mean_C: Floats = (wanted_NC - got_NC).mean(axis=0)
    if not icy_C.any() or icy_C.all():
        return mean_C
    mean, deviation = _error_at_the_fence(*(_ice_odds(z, icy_C) for z in (wanted_NC, got_NC + mean_C)))
    return mean_C + icy_C * max(-FARTHEST, min(FARTHEST, mean + LEAN * deviation))


def _ice_odds(logits_NC: Floats, icy_C: npt.NDArray[np.bool_]) -> Floats:
    """log P(icy) / P(not icy)"""
    ice_N, others_N = (np.logaddexp.reduce(logits_NC[:, chosen], axis=1) for chosen in (icy_C, ~icy_C))
    return np.asarray(ice_N - others_N)


def _error_at_the_fence(wanted_N: Floats, got_N: Floats) -> tuple[float, float]:
    """Mean and standard deviation, where an image counts as much as its answer is in doubt: p (1 - p)."""
    doubt_N = 1 / (2 + 2 * np.cosh(np.clip(wanted_N, -50, 50)))
    error_N = wanted_N - got_N
    mean = np.average(error_N, weights=doubt_N)
    return float(mean), float(np.sqrt(np.average((error_N - mean) ** 2, weights=doubt_N)))


def _last_bias(graph: GraphProto) -> TensorProto | None:
    """Of the layer that gives the logits; in a float16 graph a cast follows it."""
    makers = {name: node for node in graph.node for name in node.output}
    last = makers["logits"]
    if last.op_type == "Cast":
        last = makers[last.input[0]]
    biases = last.input[2:3] if last.op_type == "Gemm" else []
    return next((tensor for tensor in graph.initializer if tensor.name in biases), None)
