"""Pictures that are judged all together, so that a class may have too few for three splits, or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edge_road.conditions import ClassList
from edge_road.datasets.csv_index import pictures_root, read_table
from edge_road.datasets.folder import files_below
from edge_road.datasets.index import SPLITS, RoadDataset, Split
from edge_road.datasets.listing import folders_in, image_names
from edge_road.datasets.relabel import relabelled
from edge_road.recipe_data import CsvData, DataSettings, FolderData

Sample = tuple[str, int]
"""key and label"""


def open_undivided(settings: DataSettings) -> RoadDataset | None:
    """All pictures as the test split; None where there are none, or where more is wrong than their number."""
    if not isinstance(settings, (FolderData, CsvData)):
        return None
    classes, path = ClassList(settings.classes), settings.path.expanduser()
    if isinstance(settings, FolderData):
        root, samples = path, _of_folders(path, classes)
    else:
        root = pictures_root(settings, path)
        samples = _of_table(path, root, classes)
    if not samples:
        return None
    keys, labels = zip(*samples)
    every = Split(keys, np.array(labels, dtype=np.int64))
    splits = {name: every if name == "test" else every.take(np.arange(0)) for name in SPLITS}
    return relabelled(files_below(root, classes, splits), settings.labels)


def _of_folders(path: Path, classes: ClassList) -> Sequence[Sample]:
    """A folder that is no class may be the one that is missing, misspelt: then none."""
    if not path.is_dir() or not set(present := folders_in(path)) <= set(classes.names):
        return ()
    return [
        (f"{name}/{image}", label)
        for label, name in enumerate(classes.names)
        if name in present
        for image in image_names(path / name)
    ]


def _of_table(path: Path, root: Path, classes: ClassList) -> Sequence[Sample]:
    table = read_table(path, root, classes)
    return [] if table.faults else [(row.key, row.label) for row in table.rows]
