"""Small pictures that come as arrays with an official test set: validation is drawn from training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edge_road.datasets.draws import generator_seed
from edge_road.datasets.index import Labels, Split
from edge_road.errors import DataError


def official_splits(
    train: Split, test: Split, classes: Sequence[str], validation: float, seed: int, where: object
) -> dict[str, Split]:
    """A share of every class, drawn by `seed`."""
    drawn_N = np.zeros(len(train), dtype=bool)
    generator = np.random.default_rng(generator_seed(seed))
    for label, name in enumerate(classes):
        drawn_N[_drawn(train.labels_N, label, name, validation, generator, where)] = True
    return {
        "train": train.take(np.flatnonzero(~drawn_N)),
        "validation": train.take(np.flatnonzero(drawn_N)),
        "test": test,
    }


def _drawn(
    labels_N: Labels, label: int, name: str, share: float, generator: np.random.Generator, where: object
) -> Labels:
    members = np.flatnonzero(labels_N == label)
    if len(members) < 2:
        raise DataError(f"the class '{name}' has too few training pictures", where=where, got=len(members))
    return generator.choice(members, size=max(1, round(share * len(members))), replace=False)
