"""Judges any `Predictor` on prepared images: clean, and under seeded perturbations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.conditions import STATES, ClassList
from edge_road.errors import DataError
from edge_road.evaluation import metrics
from edge_road.evaluation.answers import BATCH, Answers, Progress, answers_of
from edge_road.evaluation.metrics import Labels
from edge_road.evaluation.perturbations import CLEAN, PERTURBATIONS
from edge_road.evaluation.scores import Evaluation, find_mistakes, score
from edge_road.frames import Images, Prediction
from edge_road.predictor import Predictor

DEFAULT_RUNS = 10


@dataclass(frozen=True, eq=False)
class Judged:
    """The figures, and what a comparison with another model needs."""

    evaluation: Evaluation
    clean: Prediction
    right: Mapping[str, npt.NDArray[np.float64]]
    """condition -> of each picture, the share of runs in which it was right"""
    missed: Mapping[str, npt.NDArray[np.float64]]
    """condition -> of each icy picture, the share of runs in which it was not called icy"""


def judge(
    predictor: Predictor,
    images_NHWC: Images,
    labels_N: Labels,
    perturbations: Sequence[str] = tuple(PERTURBATIONS),
    runs: int = DEFAULT_RUNS,
    seed: int = 0,
    batch_size: int = BATCH,
    keys: Sequence[str] | None = None,
    progress: Progress = lambda name: None,
) -> Evaluation:
    """The images are at the predictor's size; `keys` name them in the list of mistakes."""
    check_images(predictor, images_NHWC, labels_N)
    answers = answers_of(predictor, images_NHWC, perturbations, runs, seed, batch_size, progress)
    return sum_up(predictor.name, predictor.classes, answers, labels_N, runs, seed, keys).evaluation


def sum_up(
    artefact: str,
    classes: ClassList,
    answers: Answers,
    labels_N: Labels,
    runs: int,
    seed: int,
    keys: Sequence[str] | None = None,
) -> Judged:
    (clean,) = answers[CLEAN]
    counts_C = np.bincount(labels_N, minlength=len(classes)).tolist()
    evaluation = Evaluation(
        artefact=artefact,
        classes=classes.names,
        images=len(labels_N),
        images_of_class=dict(zip(classes.names, counts_C)),
        runs=runs,
        seed=seed,
        clean=score(CLEAN, [clean], labels_N, classes),
        perturbed=tuple(
            score(name, predictions, labels_N, classes)
            for name, predictions in answers.items()
            if name != CLEAN
        ),
        confusion=metrics.confusion(labels_N, metrics.said(clean), len(classes)).tolist(),
        mistakes=find_mistakes(clean, labels_N, classes, keys),
    )
    right = {name: _share_right(predictions, labels_N) for name, predictions in answers.items()}
    missed = {name: _share_missed(predictions, labels_N, classes) for name, predictions in answers.items()}
    return Judged(evaluation, clean, right, missed)


def _share_right(predictions: Sequence[Prediction], labels_N: Labels) -> npt.NDArray[np.float64]:
    right_RN = np.stack([metrics.said(prediction) == labels_N for prediction in predictions])
    return np.asarray(right_RN.mean(axis=0), np.float64)


def _share_missed(
    predictions: Sequence[Prediction], labels_N: Labels, classes: ClassList
) -> npt.NDArray[np.float64]:
    true_N = metrics.true_states(labels_N, classes)
    icy_N = true_N == STATES.index("icy")
    missed_RN = np.stack([metrics.missed_ice(true_N, metrics.said_states(p, classes)) for p in predictions])
    return np.asarray(missed_RN[:, icy_N].mean(axis=0), np.float64)


def check_images(predictor: Predictor, images_NHWC: Images, labels_N: Labels) -> None:
    if len(images_NHWC) == 0 or len(images_NHWC) != len(labels_N):
        raise DataError(
            "no pictures to judge with, or not one label for each",
            got=f"{len(images_NHWC)} pictures, {len(labels_N)} labels",
        )
    if images_NHWC.shape[1:] != (*predictor.size, 3) or images_NHWC.dtype != np.uint8:
        raise DataError(
            "the pictures are not at the model's size",
            where=predictor.name,
            got=f"{images_NHWC.dtype} {images_NHWC.shape[1:]}",
            expected=f"uint8 ({predictor.size[0]}, {predictor.size[1]}, 3)",
        )
    if labels_N.min() < 0 or labels_N.max() >= len(predictor.classes):
        raise DataError(
            "a label is not one of the model's classes",
            got=f"labels {labels_N.min()} to {labels_N.max()}",
            expected=f"0 to {len(predictor.classes) - 1}",
        )
