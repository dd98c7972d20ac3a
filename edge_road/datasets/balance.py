"""Against unequal classes: weights for a loss, or an epoch that shows every class equally often."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_road.datasets.index import Labels

Positions = npt.NDArray[np.int64]


def class_counts(labels_N: Labels, classes: int) -> npt.NDArray[np.int64]:
    return np.bincount(labels_N, minlength=classes).astype(np.int64)


def class_weights(labels_N: Labels, classes: int) -> npt.NDArray[np.float64]:
    """N / (present classes * N_c): their mean over the samples is 1; 0 for a class that never appears."""
    counts_C = class_counts(labels_N, classes)
    weights_C = np.zeros(classes)
    present = counts_C > 0
    weights_C[present] = len(labels_N) / (present.sum() * counts_C[present])
    return weights_C


def balanced_order(labels_N: Labels, generator: np.random.Generator) -> Positions:
    """As many positions as labels, in rounds with one picture of each class that is present.

    A large class shows a new part of itself each epoch; a small one repeats only after all of it
    has been shown.
    """
    if not len(labels_N):
        return np.zeros(0, dtype=np.int64)
    members = [np.flatnonzero(labels_N == label) for label in np.unique(labels_N)]
    rounds = -(-len(labels_N) // len(members))
    queues_RK = np.stack([_endless(positions, rounds, generator) for positions in members], axis=1)
    order: Positions = generator.permuted(queues_RK, axis=1).reshape(-1)[: len(labels_N)]
    return order


def _endless(positions: Positions, length: int, generator: np.random.Generator) -> Positions:
    passes = -(-length // len(positions))
    return np.concatenate([generator.permutation(positions) for _ in range(passes)])[:length]
