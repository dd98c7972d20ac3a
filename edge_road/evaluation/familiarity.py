"""How unfamiliar a picture is to a model: doubt of its answer, and distance from what it has learnt.

Both grow with unfamiliarity. An output that is not finite is infinitely unfamiliar.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.conditions import ClassList
from edge_road.errors import DataError
from edge_road.evaluation.abstention import state_confidence
from edge_road.evaluation.metrics import Labels
from edge_road.frames import Prediction

RADIUS_QUANTILE = 0.99
SMALLEST_RADIUS = 1e-6
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassGeometry:
    """The mean feature of each class, and the distance that 99 % of its training pictures keep within."""

    centroids_CD: npt.NDArray[np.float64]
    radii_C: npt.NDArray[np.float64]

    @classmethod
    def of(cls, features_ND: npt.NDArray[np.floating], labels_N: Labels, classes: ClassList) -> ClassGeometry:
        centroids, radii = [], []
        for label, name in enumerate(classes.names):
            members_MD = np.asarray(features_ND[labels_N == label], np.float64)
            if len(members_MD) == 0:
                raise DataError("a class has no training pictures", got=name)
            centroid_D = members_MD.mean(axis=0)
            centroids.append(centroid_D)
            radii.append(np.quantile(np.linalg.norm(members_MD - centroid_D, axis=1), RADIUS_QUANTILE))
        return cls(np.array(centroids), np.array(radii))

    def distance(self, prediction: Prediction) -> Scores:
        """To the nearest class, in units of its radius."""
        finite_N = prediction.finite_N
        features_ND = np.where(finite_N[:, None], prediction.features_ND, 0.0).astype(np.float64)
        gaps_NCD = features_ND[:, None] - self.centroids_CD
        relative_NC = np.linalg.norm(gaps_NCD, axis=2) / np.maximum(self.radii_C, SMALLEST_RADIUS)
        return np.where(finite_N, relative_NC.min(axis=1), np.inf)


def doubt(prediction: Prediction, classes: ClassList) -> Scores:
    """Log-odds against the most probable road state: resolves what 1 - p rounds away."""
    return np.where(prediction.finite_N, doubt_of(state_confidence(prediction, classes)), np.inf)


def doubt_of(confidence: Scores | float) -> Scores:
    sure = np.clip(confidence, 1e-9, 1 - 1e-9)
    return np.asarray(np.log1p(-sure) - np.log(sure), np.float64)


def confidence_of(doubt: float) -> float:
    """The way back from log-odds."""
    return float(1.0 / (1.0 + np.exp(min(doubt, 700.0))))


@dataclass(frozen=True)
class Scale:
    """Where a score lies on familiar pictures: 0 at their median, 1 at their 95 % quantile."""

    middle: float
    spread: float

    @classmethod
    def of(cls, scores_N: Scores) -> Scale:
        finite = scores_N[np.isfinite(scores_N)]
        if len(finite) == 0:
            raise DataError("no finite output on familiar pictures", got=f"{len(scores_N)} outputs")
        middle, high = np.quantile(finite, [0.5, 0.95])
        return cls(float(middle), float(max(high - middle, 1e-9)))

    def __call__(self, scores_N: Scores) -> Scores:
        return (scores_N - self.middle) / self.spread

    def back(self, score: float) -> float:
        return self.middle + score * self.spread


def log_distance(distance_N: Scores) -> Scores:
    """Like doubt a logarithm: then neither scale runs away from the other."""
    return np.asarray(np.log(np.maximum(distance_N, SMALLEST_RADIUS)), np.float64)


def either(doubt_N: Scores, distance_N: Scores, of_doubt: Scale, of_log_distance: Scale) -> Scores:
    """Unfamiliar by one or by the other: the larger of both, on their own scales."""
    return np.maximum(of_doubt(doubt_N), of_log_distance(log_distance(distance_N)))
