"""Figures of merit of a classifier; an output that is not finite counts as wrong everywhere.

Shape suffixes: N images, C classes. `said_N` holds the class that was said, `NO_ANSWER` for none.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from edge_road.conditions import STATES, UNKNOWN, ClassList
from edge_road.config import StrictModel
from edge_road.frames import Prediction

Labels = npt.NDArray[np.int64]
NO_ANSWER = -1
ECE_BINS = 15
Z_95 = 1.959963984540054
_COLDEST, _HOTTEST = 0.05, 20.0


class DangerRate(StrictModel):
    """The share of icy pictures called dry or wet, or nothing at all: nobody was warned."""

    rate: float
    low: float
    """of the 95 % Wilson interval"""
    high: float
    icy: int
    """pictures of an icy road"""


def said(prediction: Prediction) -> Labels:
    return np.where(prediction.finite_N, prediction.labels_N, NO_ANSWER)


def accuracy(labels_N: Labels, said_N: Labels) -> float:
    return float(np.mean(labels_N == said_N))


def confusion(labels_N: Labels, said_N: Labels, classes: int) -> npt.NDArray[np.int64]:
    """Rows: the truth; columns: what was said, and a last one for no answer."""
    column_N = np.where(said_N == NO_ANSWER, classes, said_N)
    counts = np.bincount(labels_N * (classes + 1) + column_N, minlength=classes * (classes + 1))
    return counts.reshape(classes, classes + 1).astype(np.int64)


def recalls(confusion_CA: npt.NDArray[np.int64]) -> list[float | None]:
    """None for a class without pictures."""
    totals_C = confusion_CA.sum(axis=1)
    return [float(confusion_CA[c, c] / total) if total else None for c, total in enumerate(totals_C)]


def macro_f1(confusion_CA: npt.NDArray[np.int64]) -> float:
    """The mean over the classes that have pictures of 2 TP / (pictures + times said)."""
    classes = len(confusion_CA)
    pictures_C, said_C = confusion_CA.sum(axis=1), confusion_CA[:, :classes].sum(axis=0)
    f1_C = 2 * np.diag(confusion_CA) / np.maximum(pictures_C + said_C, 1)
    return float(f1_C[pictures_C > 0].mean())


def said_states(prediction: Prediction, classes: ClassList) -> Labels:
    """The most probable road state, after adding the probabilities of its classes."""
    finite_N = prediction.finite_N
    probabilities_NC = np.where(finite_N[:, None], prediction.probabilities_NC, 0.0)
    return np.where(finite_N, classes.state_probabilities(probabilities_NC).argmax(axis=1), NO_ANSWER)


def about_roads(classes: ClassList) -> bool:
    """False for the classes of other data sets, which stand for no road state."""
    return UNKNOWN not in classes.states


def true_states(labels_N: Labels, classes: ClassList) -> Labels:
    """A class that stands for no road state has a number of its own, which nobody says."""
    return np.array([(*STATES, UNKNOWN).index(state) for state in classes.states], dtype=np.int64)[labels_N]


def danger_rate(missed: float, icy: int) -> DangerRate | None:
    """None without icy pictures; `missed` may be a mean over runs of the same pictures."""
    if icy == 0:
        return None
    low, high = wilson_interval(missed, icy)
    return DangerRate(rate=missed / icy, low=low, high=high, icy=icy)


def missed_ice(true_state_N: Labels, said_state_N: Labels) -> npt.NDArray[np.bool_]:
    icy = STATES.index("icy")
    return np.asarray((true_state_N == icy) & (said_state_N != icy))


def wilson_interval(hits: float, trials: int) -> tuple[float, float]:
    """Wilson (1927), 95 %: stays within [0, 1] and is not empty at 0 or all hits."""
    share, z2 = hits / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def calibration_error(prediction: Prediction, labels_N: Labels) -> float | None:
    """ECE: mean gap of confidence and accuracy over 15 equal bins, of the finite answers."""
    finite_N = prediction.finite_N
    if not finite_N.any():
        return None
    confidence_N = prediction.probabilities_NC[finite_N].max(axis=1).astype(np.float64)
    right_N = prediction.labels_N[finite_N] == labels_N[finite_N]
    bin_N = np.clip(np.ceil(confidence_N * ECE_BINS).astype(np.int64) - 1, 0, ECE_BINS - 1)
    gaps = np.bincount(bin_N, weights=confidence_N - right_N, minlength=ECE_BINS)
    return float(np.abs(gaps).sum() / len(confidence_N))


def fit_temperature(logits_NC: npt.NDArray[np.floating], labels_N: Labels) -> float:
    """The T of softmax(logits / T) with the least negative log-likelihood.

    It is convex in 1/T, so the root of its slope is found by halving. The targets are Platt's
    (1999): a class gets 1 - 1/(N+2), so that a fault-free set does not ask for T = 0.
    """
    finite_N = np.isfinite(logits_NC).all(axis=1)
    z_NC, y_N = np.asarray(logits_NC, dtype=np.float64)[finite_N], labels_N[finite_N]
    if len(z_NC) == 0:
        return 1.0
    doubt = 1.0 / (len(z_NC) + 2)
    targets_NC = np.full_like(z_NC, doubt / (z_NC.shape[1] - 1))
    targets_NC[np.arange(len(y_N)), y_N] = 1.0 - doubt
    low, high = 1 / _HOTTEST, 1 / _COLDEST
    for _ in range(60):
        middle = (low + high) / 2
        if np.sum((softmax(middle * z_NC) - targets_NC) * z_NC) < 0:
            low = middle
        else:
            high = middle
    return 2.0 / (low + high)


def softmax(z_NC: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    powers_NC = np.exp(z_NC - z_NC.max(axis=1, keepdims=True))
    return np.asarray(powers_NC / powers_NC.sum(axis=1, keepdims=True))
