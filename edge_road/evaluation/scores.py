"""What was measured of one artefact, and how predictions become it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.evaluation import metrics
from edge_road.evaluation.metrics import DangerRate, Labels
from edge_road.frames import Prediction


class Score(StrictModel):
    """One condition: means over its runs on the same pictures."""

    name: str
    """`clean` or a perturbation"""
    runs: int
    accuracy: float
    accuracy_std: float | None
    """over the runs; none for a single run"""
    state_accuracy: float | None
    """of dry, wet and icy, after adding the probabilities of each state's classes; none for other classes"""
    macro_f1: float
    recall: dict[str, float | None]
    """by class; none where the set has no picture of it"""
    danger: DangerRate | None
    """none where the set has no icy picture"""
    calibration_error: float | None
    """ECE over 15 bins; none where no output is finite"""
    not_finite: int
    """outputs with NaN or infinity over all runs; each counts as wrong"""


class Mistake(StrictModel):
    """A clean picture that was called something else."""

    position: int
    key: str | None
    """which picture of the data set it is, where that is known"""
    label: str
    said: str | None
    """none: the output was not finite"""
    confidence: float | None
    missed_ice: bool


class Evaluation(StrictModel):
    artefact: str
    """what ran where"""
    classes: tuple[str, ...]
    images: int
    images_of_class: dict[str, int]
    runs: int
    seed: int
    clean: Score
    perturbed: tuple[Score, ...]
    confusion: tuple[tuple[int, ...], ...]
    """of the clean pictures; rows: truth, columns: said, and a last column for outputs not finite"""
    mistakes: tuple[Mistake, ...] = Field(repr=False)

    @property
    def worst(self) -> Score | None:
        return min(self.perturbed, key=lambda score: score.accuracy, default=None)


def score(name: str, predictions: Sequence[Prediction], labels_N: Labels, classes: ClassList) -> Score:
    """Means over the predictions of all runs."""
    said = [metrics.said(prediction) for prediction in predictions]
    accuracies = [metrics.accuracy(labels_N, said_N) for said_N in said]
    states = [metrics.said_states(prediction, classes) for prediction in predictions]
    true_N = metrics.true_states(labels_N, classes)
    confusions = [metrics.confusion(labels_N, said_N, len(classes)) for said_N in said]
    missed = float(np.mean([metrics.missed_ice(true_N, state_N).sum() for state_N in states]))
    errors = [metrics.calibration_error(prediction, labels_N) for prediction in predictions]
    icy = sum(classes.states[label] == "icy" for label in labels_N)
    return Score(
        name=name,
        runs=len(predictions),
        accuracy=float(np.mean(accuracies)),
        accuracy_std=float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
        state_accuracy=(
            float(np.mean([metrics.accuracy(true_N, state_N) for state_N in states]))
            if metrics.about_roads(classes)
            else None
        ),
        macro_f1=float(np.mean([metrics.macro_f1(confusion) for confusion in confusions])),
        recall=dict(zip(classes.names, metrics.recalls(np.sum(confusions, axis=0)))),
        danger=metrics.danger_rate(missed, icy),
        calibration_error=_mean_of_known(errors),
        not_finite=int(sum((~prediction.finite_N).sum() for prediction in predictions)),
    )


def find_mistakes(
    prediction: Prediction, labels_N: Labels, classes: ClassList, keys: Sequence[str] | None = None
) -> tuple[Mistake, ...]:
    """Missed ice first, then by confidence: the surer, the worse."""
    said_N = metrics.said(prediction)
    true_N = metrics.true_states(labels_N, classes)
    missed_N = metrics.missed_ice(true_N, metrics.said_states(prediction, classes))
    mistakes = []
    for position in np.flatnonzero(said_N != labels_N).tolist():
        answered = said_N[position] != metrics.NO_ANSWER
        mistake = Mistake(
            position=position,
            key=keys[position] if keys else None,
            label=classes.names[labels_N[position]],
            said=classes.names[said_N[position]] if answered else None,
            confidence=float(prediction.probabilities_NC[position].max()) if answered else None,
            missed_ice=bool(missed_N[position]),
        )
        mistakes.append(mistake)
    return tuple(sorted(mistakes, key=lambda m: (not m.missed_ice, -(m.confidence or 1.0), m.position)))


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
