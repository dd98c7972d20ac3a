"""Whether confidence means what it says: reliability diagrams before and after temperature scaling.

Expected calibration error and temperature scaling: Guo, Pleiss, Sun and Weinberger (2017).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_road.config import StrictModel
from edge_road.evaluation.metrics import ECE_BINS, Labels, fit_temperature, softmax

Shares = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
HALVES = "the other half of the pictures"


class Bin(StrictModel):
    """Answers whose confidence lies in ((n-1)/15, n/15]."""

    answers: int
    confidence: float | None
    """their mean; none without answers"""
    accuracy: float | None


class Reliability(StrictModel):
    calibration_error: float
    """ECE: the mean gap of confidence and accuracy, weighted by answers"""
    bins: tuple[Bin, ...]


class Calibration(StrictModel):
    temperature: float
    fitted_on: str
    """which pictures the temperature was found with; never those of the test split"""
    answers: int
    """finite outputs that both diagrams are made of"""
    before: Reliability
    """softmax(logits)"""
    after: Reliability
    """softmax(logits / temperature)"""


def reliability(confidence_N: Shares, right_N: Flags) -> Reliability:
    bin_N = np.clip(np.ceil(confidence_N * ECE_BINS).astype(np.int64) - 1, 0, ECE_BINS - 1)
    answers_B = np.bincount(bin_N, minlength=ECE_BINS)
    sure_B = np.bincount(bin_N, weights=confidence_N, minlength=ECE_BINS)
    right_B = np.bincount(bin_N, weights=right_N, minlength=ECE_BINS)
    bins = tuple(
        Bin(answers=int(n), confidence=float(s / n) if n else None, accuracy=float(r / n) if n else None)
        for n, s, r in zip(answers_B, sure_B, right_B)
    )
    error = float(np.abs(sure_B - right_B).sum() / len(confidence_N))
    return Reliability(calibration_error=error, bins=bins)


def calibration_at(
    logits_NC: npt.NDArray[np.floating], labels_N: Labels, temperature: float, fitted_on: str
) -> Calibration | None:
    """Of a temperature found elsewhere; none where no output is finite."""
    finite_N = np.isfinite(logits_NC).all(axis=1)
    if not finite_N.any():
        return None
    z_NC, y_N = np.asarray(logits_NC, np.float64)[finite_N], labels_N[finite_N]
    right_N = z_NC.argmax(axis=1) == y_N
    before, after = (reliability(softmax(z_NC / t).max(axis=1), right_N) for t in (1.0, temperature))
    return Calibration(
        temperature=temperature, fitted_on=fitted_on, answers=len(y_N), before=before, after=after
    )


def calibration_by_halves(
    logits_NC: npt.NDArray[np.floating], labels_N: Labels, generator: np.random.Generator
) -> Calibration | None:
    """Without a validation set: fitted on a random half, judged on the other."""
    order_N = generator.permutation(len(labels_N))
    fit_M, judge_M = order_N[: len(order_N) // 2], order_N[len(order_N) // 2 :]
    temperature = fit_temperature(logits_NC[fit_M], labels_N[fit_M])
    return calibration_at(logits_NC[judge_M], labels_N[judge_M], temperature, HALVES)
