"""A share of the training pictures, to see what fewer of them cost; validation and test stay whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge_road.datasets.draws import ranked_keys
from edge_road.datasets.index import RoadDataset, Split


def with_train_share(dataset: RoadDataset, share: float, seed: int) -> RoadDataset:
    """Every class keeps its share, and one picture at least; a smaller share is a part of a larger one."""
    if share == 1.0:
        return dataset
    train = dataset.splits["train"]
    kept = {key for label in np.unique(train.labels_N) for key in _first(train, int(label), share, seed)}
    positions = np.array([i for i, key in enumerate(train.keys) if key in kept], dtype=np.int64)
    return replace(dataset, splits={**dataset.splits, "train": train.take(positions)})


def _first(train: Split, label: int, share: float, seed: int) -> list[str]:
    keys = [train.keys[i] for i in np.flatnonzero(train.labels_N == label)]
    return ranked_keys(keys, f"{seed}\ntrain share")[: max(1, round(share * len(keys)))]
