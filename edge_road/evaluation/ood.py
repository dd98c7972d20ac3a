"""Does a model know what it does not know: AUROC of doubt, of distance and of both (out of distribution)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.errors import DataError
from edge_road.evaluation.familiarity import ClassGeometry, Scale, confidence_of, doubt, either, log_distance
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
    """95 % of the roads have this confidence or more"""
    distance_limit: float | None
    """95 % of the roads lie within so many radii; none where more than 5 % are not finite"""

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


def rule_scores(
    prediction: Prediction, familiar: Prediction, geometry: ClassGeometry, classes: ClassList
) -> Mapping[str, Scores]:
    """By rule; `familiar` are other road pictures, which set the scales that `either` compares on."""
    doubt_N, distance_N = doubt(prediction, classes), geometry.distance(prediction)
    scales = Scale.of(doubt(familiar, classes)), Scale.of(log_distance(geometry.distance(familiar)))
    return {"confidence": doubt_N, "distance": distance_N, "either": either(doubt_N, distance_N, *scales)}


def judge_strangers(
    predictor: Predictor,
    roads: Prediction,
    road_images_NHWC: Images,
    familiar: Prediction,
    geometry: ClassGeometry,
    seed: int = 0,
) -> OodResult | None:
    """None where the model has no finite output on any road: there is nothing to compare with."""
    if not (roads.finite_N.any() and familiar.finite_N.any()):
        return None
    inside = rule_scores(roads, familiar, geometry, predictor.classes)
    kinds = {}
    for kind in STRANGE:
        prediction = predictor.predict(strange_pictures(road_images_NHWC, kind, seed))
        outside = rule_scores(prediction, familiar, geometry, predictor.classes)
        kinds[kind] = {rule: separation(inside[rule], outside[rule]) for rule in RULES}
    means = {
        rule: Separation(
            auroc=float(np.mean([by_rule[rule].auroc for by_rule in kinds.values()])),
            caught=float(np.mean([by_rule[rule].caught for by_rule in kinds.values()])),
        )
        for rule in RULES
    }
    distance_limit = accepting_limit(inside["distance"])
    return OodResult(
        roads=len(roads),
        strange=len(road_images_NHWC),
        kinds=kinds,
        means=means,
        confidence_limit=confidence_of(accepting_limit(inside["confidence"])),
        distance_limit=distance_limit if np.isfinite(distance_limit) else None,
    )
