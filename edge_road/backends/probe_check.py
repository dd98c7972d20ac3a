"""Golden vectors: does this machine give the outputs that the bundle was released with?"""

from __future__ import annotations

import numpy as np

from edge_road.bundle import Precision, Probe
from edge_road.errors import BackendError
from edge_road.predictor import Predictor

# Allowed |logit - stored logit|, as a share of the largest stored logit (at least 1). Float kernels
# differ between processors in the order of their sums; in float16 and int8 one value that lies on a
# rounding edge falls to the other side and moves what follows by a step.
PROBE_TOLERANCE: dict[Precision, float] = {"float32": 1e-3, "float16": 2e-2, "int8": 1e-1}


def check_probe(predictor: Predictor, probe: Probe, precision: Precision) -> float:
    """The largest deviation from the stored logits; a BackendError when it is too large."""
    expected_NC = probe.logits_NC.get(precision)
    if expected_NC is None:
        raise BackendError("the probe has no outputs for this model", got=precision)
    tolerance = PROBE_TOLERANCE[precision] * max(1.0, float(np.abs(expected_NC).max()))
    answer = predictor.predict(probe.images_NHWC)
    if answer.logits_NC.shape != expected_NC.shape:
        raise _failed(predictor, f"logits of shape {answer.logits_NC.shape}", str(expected_NC.shape))
    worst = float(np.abs(answer.logits_NC - expected_NC).max())
    # Written so that NaN fails: a comparison with NaN is false.
    if not (worst <= tolerance and answer.finite_N.all()):
        raise _failed(predictor, f"off by {worst:.3g}", f"off by at most {tolerance:.3g}")
    return worst


def _failed(predictor: Predictor, got: str, expected: str) -> BackendError:
    return BackendError(
        "the model does not give its own outputs on this machine",
        where=predictor.name,
        got=got,
        expected=expected,
        fix="do not use it here; check the runtime's version, or use another precision",
    )
