"""Risk against coverage: what answering `unknown` below a confidence costs, and what it saves.

Selective classification after Geifman and El-Yaniv (2017); the confidence is that of the road state,
which is what the runtime compares with its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_road.conditions import STATES, ClassList
from edge_road.config import StrictModel
from edge_road.evaluation.metrics import Labels, about_roads, true_states
from edge_road.frames import Prediction

COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7)
CURVE_POINTS = 101


class OperatingPoint(StrictModel):
    """Answers are given at this confidence and above; below it stands `unknown`."""

    threshold: float
    coverage: float
    """share of all pictures that got an answer"""
    risk: float | None
    """share of the answers that name a wrong road state; none without answers"""
    wrong_avoided: int
    right_lost: int
    danger: float | None
    """share of the icy pictures that were called dry or wet; none without icy ones"""


class Abstention(StrictModel):
    area: float
    """under the risk-coverage curve: the mean risk over all coverages; 0 is best"""
    curve: tuple[OperatingPoint, ...]
    """from few answers to all, at most 101 points"""
    points: tuple[OperatingPoint, ...]
    """at fixed coverages"""
    chosen: OperatingPoint | None
    """at the threshold that the artefact carries, where it has one"""


def state_confidence(prediction: Prediction, classes: ClassList) -> npt.NDArray[np.float64]:
    """The largest state probability; minus infinity for an output that is not finite."""
    return np.where(prediction.finite_N, _answers(prediction, classes).max(axis=1), -np.inf)


def abstention(
    prediction: Prediction, labels_N: Labels, classes: ClassList, threshold: float | None = None
) -> Abstention | None:
    """None where no output is finite: nothing was answered."""
    finite_N = prediction.finite_N
    if not finite_N.any():
        return None
    confidence_N = state_confidence(prediction, classes)
    said_N = _answers(prediction, classes).argmax(axis=1)
    roads = about_roads(classes)
    true_N = true_states(labels_N, classes) if roads else labels_N
    counter = _Counter(confidence_N, said_N, true_N, icy=STATES.index("icy") if roads else -1)
    thresholds = np.unique(confidence_N[finite_N])[::-1]
    points = [counter.at(float(value)) for value in thresholds]
    return Abstention(
        area=_area(points),
        curve=tuple(points[i] for i in _spread(len(points))),
        points=tuple(_nearest(points, share) for share in COVERAGES),
        chosen=None if threshold is None else counter.at(threshold),
    )


def _answers(prediction: Prediction, classes: ClassList) -> npt.NDArray[np.float64]:
    """Probabilities of the road states, or of the classes where they stand for none."""
    probabilities_NC = np.where(prediction.finite_N[:, None], prediction.probabilities_NC, 0.0)
    if not about_roads(classes):
        return probabilities_NC.astype(np.float64)
    return classes.state_probabilities(probabilities_NC)


class _Counter:
    """Sorted once, so that every threshold is a look-up."""

    def __init__(
        self, confidence_N: npt.NDArray[np.float64], said_N: Labels, true_N: Labels, icy: int
    ) -> None:
        order_N = np.argsort(-confidence_N, kind="stable")
        self.falling_N = -confidence_N[order_N]
        wrong_N = (said_N != true_N)[order_N]
        self.icy = int((true_N == icy).sum())
        self.wrong_upto = np.concatenate([[0], np.cumsum(wrong_N)])
        self.missed_upto = np.concatenate([[0], np.cumsum(wrong_N & (true_N[order_N] == icy))])
        self.answerable = int(np.isfinite(confidence_N).sum())

    def at(self, threshold: float) -> OperatingPoint:
        answered = int(np.searchsorted(self.falling_N, -threshold, side="right"))
        wrong, all_wrong = int(self.wrong_upto[answered]), int(self.wrong_upto[self.answerable])
        return OperatingPoint(
            threshold=threshold,
            coverage=answered / len(self.falling_N),
            risk=wrong / answered if answered else None,
            wrong_avoided=all_wrong - wrong,
            right_lost=(self.answerable - answered) - (all_wrong - wrong),
            danger=float(self.missed_upto[answered] / self.icy) if self.icy else None,
        )


def _nearest(points: Sequence[OperatingPoint], coverage: float) -> OperatingPoint:
    return min(points, key=lambda point: abs(point.coverage - coverage))


def _area(points: Sequence[OperatingPoint]) -> float:
    """Each further answer has the risk of the point that lets it in; equal confidences come together."""
    coverage = np.array([point.coverage for point in points])
    risk = np.array([point.risk for point in points], np.float64)
    return float((np.diff(coverage, prepend=0.0) * risk).sum() / coverage[-1])


def _spread(count: int) -> list[int]:
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, CURVE_POINTS))})
