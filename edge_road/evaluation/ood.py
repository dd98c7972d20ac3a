"""Does a model know what it does not know: AUROC of doubt, of distance and of both (out of distribution)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.errors import DataError
from edge_road.evaluation.familiarity import (
    ClassGeometry,
    Scale,
    confidence_of,
    doubt,
    doubt_of,
    either,
    log_distance,
)
from edge_road.evaluation.strange_pictures import STRANGE, strange_pictures
from edge_road.frames import Images, Prediction
from edge_road.predictor import Predictor

ACCEPTED = 0.95
RULES = ("confidence", "distance", "either")
Scores = npt.NDArray[np.float64]


class Separation(StrictModel):
    """How well one rule tells one kind of strange picture from road pictures."""

    auroc: float
    """chance that a strange picture looks stranger than a road; 0.5 is guessing"""
    caught: float
    """share of the strange pictures refused at the limit that lets 95 % of the roads pass"""


class OodResult(StrictModel):
    roads: int
    strange: int
    """pictures of each kind"""
    kinds: dict[str, dict[str, Separation]]
    """kind -> rule (confidence, distance, either) -> how well"""
    means: dict[str, Separation]
    """rule -> mean over the kinds"""
    confidence_limit: float
    """95 % of the familiar roads have this confidence or more"""
    distance_limit: float | None
    """95 % of the familiar roads lie within so many radii; none where more than 5 % are not finite"""
    limits_from: str = "the judged pictures"
    """which roads are the familiar ones; in older reports the judged ones themselves"""

    @property
    def best(self) -> str:
        """The rule with the largest mean AUROC."""
        return max(self.means, key=lambda rule: self.means[rule].auroc)


def auroc(inside_N: Scores, outside_M: Scores) -> float:
    """Mann and Whitney (1947): P(outside > inside) + P(equal) / 2."""
    if len(inside_N) == 0 or len(outside_M) == 0:
        raise DataError(
            "both sides need pictures", got=f"{len(inside_N)} inside and {len(outside_M)} outside"
        )
    ordered_N = np.sort(inside_N)
    below_M = np.searchsorted(ordered_N, outside_M, side="left")
    upto_M = np.searchsorted(ordered_N, outside_M, side="right")
    return float((below_M + upto_M).sum() / (2 * len(inside_N) * len(outside_M)))


def separation(inside_N: Scores, outside_M: Scores) -> Separation:
    caught = float(np.mean(outside_M > accepting_limit(inside_N)))
    return Separation(auroc=auroc(inside_N, outside_M), caught=caught)


def accepting_limit(inside_N: Scores) -> float:
    """At or below it lie 95 % of the roads, or a few more."""
    return float(np.quantile(inside_N, ACCEPTED, method="higher"))


@dataclass(frozen=True, eq=False)
class Familiar:
    """What a model knows: its classes' places, and the scales of doubt and distance on known roads."""

    classes: ClassList
    geometry: ClassGeometry
    of_doubt: Scale
    of_log_distance: Scale

    @classmethod
    def of(cls, familiar: Prediction, geometry: ClassGeometry, classes: ClassList) -> Familiar:
        distance_N = geometry.distance(familiar)
        return cls(classes, geometry, Scale.of(doubt(familiar, classes)), Scale.of(log_distance(distance_N)))

    def scores(self, prediction: Prediction) -> dict[str, Scores]:
        """By rule."""
        doubt_N, distance_N = doubt(prediction, self.classes), self.geometry.distance(prediction)
        both_N = either(doubt_N, distance_N, self.of_doubt, self.of_log_distance)
        return dict(zip(RULES, (doubt_N, distance_N, both_N)))

    def limits(self, score: float) -> tuple[float, float]:
        """The confidence and the radii at which `either` has this score: beyond one of them it is higher."""
        radii = float(np.exp(self.of_log_distance.back(score)))
        return confidence_of(self.of_doubt.back(score)), radii


@dataclass(frozen=True, eq=False)
class StrangerScores:
    """Rule -> unfamiliarity, of familiar roads, of the judged roads and of each kind of strange picture."""

    familiar: Familiar
    known: Mapping[str, Scores]
    limits_from: str
    """what the familiar roads are"""
    roads: Mapping[str, Scores]
    kinds: Mapping[str, Mapping[str, Scores]]

    def limits(self) -> tuple[float, float] | None:
        """Confidence and radii that let 95 % of the familiar roads pass; none where too few are finite.

        Read off the judged roads, the share of these that pass would be no measurement.
        """
        limit = accepting_limit(self.known["either"])
        return self.familiar.limits(limit) if np.isfinite(limit) else None

    def refused(self, confidence: float, radii: float) -> dict[str, float]:
        """The share of each kind, and of `roads`, below this confidence or beyond so many radii."""
        most = doubt_of(confidence)
        all_kinds = {"roads": self.roads, **self.kinds}
        return {
            kind: float(np.mean((found["confidence"] > most) | (found["distance"] > radii)))
            for kind, found in all_kinds.items()
        }


def score_strangers(
    predictor: Predictor,
    roads: Prediction,
    road_images_NHWC: Images,
    familiar: Prediction,
    geometry: ClassGeometry,
    seed: int = 0,
    familiar_are: str = "other pictures",
) -> StrangerScores | None:
    """`familiar` are other road pictures: they set the limits, and the scales that `either` compares on.

    None where the model has no finite output on any road: there is nothing to compare with.
    """
    if not (roads.finite_N.any() and familiar.finite_N.any()):
        return None
    known = Familiar.of(familiar, geometry, predictor.classes)
    kinds = {
        kind: known.scores(predictor.predict(strange_pictures(road_images_NHWC, kind, seed)))
        for kind in STRANGE
    }
    return StrangerScores(known, known.scores(familiar), familiar_are, known.scores(roads), kinds)


def sum_up_strangers(found: StrangerScores) -> OodResult:
    kinds = {
        kind: {rule: separation(found.roads[rule], outside[rule]) for rule in RULES}
        for kind, outside in found.kinds.items()
    }
    means = {
        rule: Separation(
            auroc=float(np.mean([by_rule[rule].auroc for by_rule in kinds.values()])),
            caught=float(np.mean([by_rule[rule].caught for by_rule in kinds.values()])),
        )
        for rule in RULES
    }
    distance_limit = accepting_limit(found.known["distance"])
    return OodResult(
        roads=len(found.roads["distance"]),
        strange=len(next(iter(found.kinds.values()))["distance"]),
        kinds=kinds,
        means=means,
        confidence_limit=confidence_of(accepting_limit(found.known["confidence"])),
        distance_limit=distance_limit if np.isfinite(distance_limit) else None,
        limits_from=found.limits_from,
    )
