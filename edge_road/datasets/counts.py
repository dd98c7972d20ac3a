"""How many pictures each class has in each split, as a table to print."""

from __future__ import annotations

import numpy as np

from edge_road.datasets.balance import class_counts
from edge_road.datasets.index import SPLITS, RoadDataset


def count_table(dataset: RoadDataset) -> str:
    """One line a class, and a sum."""
    counts_SC = np.stack(
        [class_counts(dataset.splits[name].labels_N, len(dataset.classes)) for name in SPLITS]
    )
    rows = [*zip(dataset.classes.names, counts_SC.T.tolist()), ("sum", counts_SC.sum(axis=1).tolist())]
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"{'class':<{width}}" + "".join(f"{name:>12}" for name in SPLITS)]
    lines += [f"{name:<{width}}" + "".join(f"{count:>12,}" for count in counts) for name, counts in rows]
    return "\n".join(lines)
