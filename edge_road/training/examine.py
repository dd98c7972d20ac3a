"""All that a report says of one artefact beyond its scores: calibration, abstention, strangers, lab."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edge_road.datasets import RoadDataset, Split
from edge_road.datasets.balance import balanced_order
from edge_road.datasets.prepared import Prepared, prepare_split
from edge_road.evaluation.abstention import abstention
from edge_road.evaluation.familiarity import ClassGeometry
from edge_road.evaluation.judge import Judged
from edge_road.evaluation.lab_result import LabResult
from edge_road.evaluation.mce import Errors, mean_corruption_error
from edge_road.evaluation.metrics import fit_temperature
from edge_road.evaluation.ood import OodResult, StrangerScores, score_strangers, sum_up_strangers
from edge_road.evaluation.reliability import Calibration, calibration_at, calibration_by_halves
from edge_road.evaluation.report import Entry
from edge_road.frames import Images, Prediction
from edge_road.training.artefacts import Artefact

MOST_VALIDATION, MOST_TRAINING, MOST_STRANGE = 500, 600, 200


@dataclass(frozen=True)
class Wishes:
    """What a report is asked for beside the scores."""

    split: str
    seed: int
    ood: bool = False
    lab: int = 0
    """pictures for the measures that need torch; 0: none of them"""
    baseline: Errors | None = None


@dataclass(frozen=True)
class Examination:
    """One judged artefact, and the other pictures of the data set that it may be asked about."""

    artefact: Artefact
    judged: Judged
    prepared: Prepared
    dataset: RoadDataset
    wishes: Wishes
    progress: Callable[[str], None] = lambda step: None

    def entry(self) -> Entry:
        shipped, classes = self.artefact.shipped, self.artefact.predictor.classes
        threshold = shipped.confidence_threshold if shipped else None
        baseline = self.wishes.baseline
        evaluation = self.judged.evaluation
        return Entry(
            subject=self.artefact.subject,
            evaluation=evaluation,
            calibration=self.calibration(),
            abstention=abstention(self.judged.clean, self.prepared.labels_N, classes, threshold),
            ood=self.strangers() if self.wishes.ood else None,
            mce=mean_corruption_error(evaluation.perturbed, baseline) if baseline else None,
            lab=self.lab() if self.wishes.lab else None,
        )

    def calibration(self) -> Calibration | None:
        """A bundle brings its temperature; for a run it is found on pictures that are not judged."""
        logits_NC, labels_N = self.judged.clean.logits_NC, self.prepared.labels_N
        if self.artefact.shipped:
            temperature = self.artefact.shipped.temperature
            return calibration_at(logits_NC, labels_N, temperature, "the bundle's own, from its export")
        if self.validation is not None:
            pictures, prediction = self.validation
            temperature = fit_temperature(prediction.logits_NC, pictures.labels_N)
            where = f"{len(pictures.labels_N)} pictures of the validation split"
            return calibration_at(logits_NC, labels_N, temperature, where)
        if len(labels_N) < 2:
            return None
        return calibration_by_halves(logits_NC, labels_N, np.random.default_rng(self.wishes.seed))

    def strangers(self) -> OodResult | None:
        found = self.stranger_scores()
        return sum_up_strangers(found) if found else None

    def stranger_scores(self) -> StrangerScores | None:
        """None for a run whose training pictures are not here: its classes' places are not known."""
        geometry = self._geometry()
        if geometry is None:
            return None
        self.progress("strange pictures")
        clean, images_NHWC = self.judged.clean, spread_out(self.prepared.images_NHWC, MOST_STRANGE)
        if self.validation is not None:
            roads, familiar, they_are = clean, self.validation[1], "validation pictures"
        else:
            roads, familiar = _every_other(clean, 0), _every_other(clean, 1)
            they_are = "every other of these pictures"
        if len(familiar) == 0:
            return None
        predictor = self.artefact.predictor
        return score_strangers(predictor, roads, images_NHWC, familiar, geometry, self.wishes.seed, they_are)

    def lab(self) -> LabResult | None:
        """Of a run only: an exported file has no gradients."""
        if self.artefact.run is None:
            return None
        from edge_road.nn.predictor import load_model
        from edge_road.training.lab import DELTA_V, run_lab

        labels_N = self.prepared.labels_N
        order_N = np.random.default_rng(self.wishes.seed).permutation(len(labels_N))
        chosen_N = np.sort(order_N[: self.wishes.lab])
        found = run_lab(
            load_model(self.artefact.run),
            self.prepared.images_NHWC[chosen_N],
            labels_N[chosen_N],
            self.artefact.predictor.classes.names,
            self.wishes.seed,
            self.artefact.delta_v or DELTA_V,
            self.progress,
        )
        position = int(chosen_N[found.surface.picture])
        return found.model_copy(update={"surface": found.surface.model_copy(update={"picture": position})})

    @cached_property
    def validation(self) -> tuple[Prepared, Prediction] | None:
        """Only beside the test split: the other choices may contain these pictures."""
        if self.wishes.split != "test" or len(self.dataset.splits["validation"]) == 0:
            return None
        self.progress("validation pictures")
        return self._ask(draw(self.dataset.splits["validation"], MOST_VALIDATION, self.wishes.seed))

    def _geometry(self) -> ClassGeometry | None:
        if shipped := self.artefact.shipped:
            return ClassGeometry(np.array(shipped.centroids), np.array(shipped.radii))
        if self.dataset.digest != self.artefact.data_digest:
            return None
        self.progress("training pictures")
        drawn = draw_evenly(self.dataset.splits["train"], MOST_TRAINING, self.wishes.seed)
        pictures, prediction = self._ask(drawn)
        return ClassGeometry.of(prediction.features_ND, pictures.labels_N, self.artefact.predictor.classes)

    def _ask(self, split: Split) -> tuple[Prepared, Prediction]:
        pictures = prepare_split(self.dataset, split, self.artefact.preprocessing)
        return pictures, self.artefact.predictor.predict(pictures.images_NHWC)


def draw(split: Split, most: int | None, seed: int) -> Split:
    """At most so many pictures, in their order."""
    if most is None or most >= len(split):
        return split
    return split.take(np.sort(np.random.default_rng(seed).permutation(len(split))[:most]))


def draw_evenly(split: Split, most: int, seed: int) -> Split:
    """The same with every class as often as it can be: a rare one has a place and a radius too."""
    if most >= len(split):
        return split
    order_N = balanced_order(split.labels_N, np.random.default_rng(seed))
    return split.take(np.unique(order_N[:most]))


def spread_out(images_NHWC: Images, most: int) -> Images:
    """At most so many, of all parts of a split: its pictures lie class by class."""
    count = len(images_NHWC)
    few_NHWC: Images = images_NHWC[np.linspace(0, count - 1, min(most, count)).astype(int)]
    return few_NHWC


def _every_other(prediction: Prediction, first: int) -> Prediction:
    return Prediction(
        prediction.probabilities_NC[first::2],
        prediction.logits_NC[first::2],
        prediction.features_ND[first::2],
    )
