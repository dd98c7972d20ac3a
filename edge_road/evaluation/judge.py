"""Judges any `Predictor` on prepared images: clean, and under seeded perturbations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edge_road.errors import DataError
from edge_road.evaluation import metrics
from edge_road.evaluation.metrics import Labels
from edge_road.evaluation.perturbations import CLEAN, PERTURBATIONS, Perturbation, perturb, perturbation
from edge_road.evaluation.scores import Evaluation, find_mistakes, score
from edge_road.frames import Images, Prediction, join
from edge_road.predictor import Predictor

DEFAULT_RUNS = 10
Progress = Callable[[str], None]


def judge(
    predictor: Predictor,
    images_NHWC: Images,
    labels_N: Labels,
    perturbations: Sequence[str] = tuple(PERTURBATIONS),
    runs: int = DEFAULT_RUNS,
    seed: int = 0,
    batch_size: int = 64,
    keys: Sequence[str] | None = None,
    progress: Progress = lambda name: None,
) -> Evaluation:
    """The images are at the predictor's size; `keys` name them in the list of mistakes."""
    _check_images(predictor, images_NHWC, labels_N)
    classes = predictor.classes

    def runs_of(condition: Perturbation) -> list[Prediction]:
        progress(condition.name)
        numbers = range(runs if condition.random else 1)
        return [
            _predict(predictor, _perturbed(images_NHWC, condition.name, seed, run, batch_size))
            for run in numbers
        ]

    conditions = [perturbation(name) for name in perturbations]
    progress(CLEAN)
    clean = _predict(predictor, _batches(images_NHWC, batch_size))
    counts_C = np.bincount(labels_N, minlength=len(classes)).tolist()
    return Evaluation(
        artefact=predictor.name,
        classes=classes.names,
        images=len(labels_N),
        images_of_class=dict(zip(classes.names, counts_C)),
        runs=runs,
        seed=seed,
        clean=score(CLEAN, [clean], labels_N, classes),
        perturbed=tuple(score(c.name, runs_of(c), labels_N, classes) for c in conditions),
        confusion=metrics.confusion(labels_N, metrics.said(clean), len(classes)).tolist(),
        mistakes=find_mistakes(clean, labels_N, classes, keys),
    )


def _batches(images_NHWC: Images, batch_size: int) -> Iterator[Images]:
    for start in range(0, len(images_NHWC), batch_size):
        yield images_NHWC[start : start + batch_size]


def _perturbed(images_NHWC: Images, name: str, seed: int, run: int, batch_size: int) -> Iterator[Images]:
    for start in range(0, len(images_NHWC), batch_size):
        yield perturb(images_NHWC[start : start + batch_size], name, seed, run, first=start)


def _predict(predictor: Predictor, batches: Iterator[Images]) -> Prediction:
    """The next batch is made in a second thread while the predictor is busy with this one."""
    predictions = []
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = maker.submit(next, batches, None)
            predictions.append(predictor.predict(batch))
    return join(predictions)


def _check_images(predictor: Predictor, images_NHWC: Images, labels_N: Labels) -> None:
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
