"""Coarser labels from finer ones: 27 RSCD labels to 6 frictions or 3 road states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge_road.conditions import STATE_OF_FRICTION, STATES, ClassList, rscd_label, state_of
from edge_road.datasets.index import RoadDataset, Split
from edge_road.errors import DataError

FRICTIONS = tuple(STATE_OF_FRICTION)


def relabelled(dataset: RoadDataset, labels: str) -> RoadDataset:
    """`friction6` or `state3`; any other name leaves the labels as they are."""
    if labels not in ("friction6", "state3"):
        return dataset
    names = FRICTIONS if labels == "friction6" else STATES
    coarse = friction_of if labels == "friction6" else state_of
    table_C = np.array([names.index(coarse(name)) for name in dataset.classes.names], dtype=np.int64)
    splits = {name: Split(split.keys, table_C[split.labels_N]) for name, split in dataset.splits.items()}
    return replace(dataset, classes=ClassList(names), splits=splits)


def friction_of(class_name: str) -> str:
    if class_name in FRICTIONS:
        return class_name
    if class_name in STATES:
        raise DataError(
            f"'{class_name}' covers several frictions",
            where="data.labels",
            expected="RSCD labels or frictions as classes",
            fix="labels = 'state3', or leave `labels` out",
        )
    return rscd_label(class_name).friction
