"""What one trained model answered: for every picture and every run of every condition, right or wrong."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge_road.datasets.index import Labels
from edge_road.datasets.prepared import Prepared
from edge_road.evaluation import metrics
from edge_road.evaluation.answers import answers_of
from edge_road.evaluation.judge import check_images
from edge_road.evaluation.perturbations import CLEAN
from edge_road.files import write_atomically
from edge_road.frames import Floats, Prediction
from edge_road.predictor import Predictor

Right = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Answers:
    """Arrays over runs R and pictures N, by condition."""

    keys: tuple[str, ...]
    labels_N: Labels
    icy_N: Right
    right: Mapping[str, Right]
    missed_ice: Mapping[str, Right]
    features: Mapping[str, Floats]
    """of the first run, of a few conditions"""


def ask(
    predictor: Predictor, test: Prepared, conditions: Sequence[str], runs: int, keep_features: Sequence[str]
) -> Answers:
    check_images(predictor, test.images_NHWC, test.labels_N)
    said = answers_of(
        predictor, test.images_NHWC, conditions, runs, seed=0, features_of=frozenset(keep_features)
    )
    classes = predictor.classes
    true_N = metrics.true_states(test.labels_N, classes)

    def missed_RN(predictions: Sequence[Prediction]) -> Right:
        return metrics.missed_ice(true_N, np.stack([metrics.said_states(p, classes) for p in predictions]))

    return Answers(
        keys=test.keys,
        labels_N=test.labels_N,
        icy_N=metrics.missed_ice(true_N, np.full_like(true_N, metrics.NO_ANSWER)),
        right={
            name: np.stack([metrics.said(p) for p in found]) == test.labels_N for name, found in said.items()
        },
        missed_ice={name: missed_RN(found) for name, found in said.items()},
        features={name: said[name][0].features_ND for name in keep_features if name in said},
    )


def write_answers(path: Path, answers: Answers, identity: str) -> None:
    arrays = {
        "identity": np.array(identity),
        "keys": np.array(answers.keys),
        "labels": answers.labels_N,
        "icy": answers.icy_N,
        **{f"right/{name}": values for name, values in answers.right.items()},
        **{f"missed/{name}": values for name, values in answers.missed_ice.items()},
        **{f"features/{name}": values for name, values in answers.features.items()},
    }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    write_atomically(path, content.getvalue())


def read_answers(path: Path, identity: str) -> Answers | None:
    """None when there are none, or of another model or other conditions."""
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    if str(arrays["identity"]) != identity:
        return None

    def part(kind: str) -> dict[str, npt.NDArray[np.generic]]:
        return {name.removeprefix(kind): a for name, a in arrays.items() if name.startswith(kind)}

    return Answers(
        keys=tuple(arrays["keys"].tolist()),
        labels_N=arrays["labels"],
        icy_N=arrays["icy"],
        right=part("right/"),  # type: ignore[arg-type]
        missed_ice=part("missed/"),  # type: ignore[arg-type]
        features=part("features/"),  # type: ignore[arg-type]
    )


def conditions_of(answers: Answers) -> list[str]:
    return [name for name in answers.right if name != CLEAN]
