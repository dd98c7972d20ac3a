"""RSCD as published: three folders, labels from the file names, a million names in seconds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from edge_road.conditions import RSCD_CLASSES, ClassList, parse_rscd_name
from edge_road.datasets.folder import read_below
from edge_road.datasets.index import RoadDataset, Split
from edge_road.datasets.listing import check_folder, image_names
from edge_road.errors import DataError
from edge_road.recipe_data import RscdData

FOLDERS = {"train": "train", "validation": "vali_20k", "test": "test_50k"}
_LABEL_OF_FOLDER = {name.replace("-", "_"): name for name in RSCD_CLASSES}
_INDEX = {name: index for index, name in enumerate(RSCD_CLASSES)}


def open_rscd(settings: RscdData, path: Path) -> RoadDataset:
    check_folder(path, "the data set's folder")
    splits = {split: _split(path, folder) for split, folder in FOLDERS.items()}
    counts_C = np.bincount(splits["train"].labels_N, minlength=len(RSCD_CLASSES))
    if empty := [name for name, count in zip(RSCD_CLASSES, counts_C) if not count]:
        raise DataError("classes have no training pictures", where=path / "train", got=", ".join(empty))
    return RoadDataset(ClassList(RSCD_CLASSES), splits, partial(read_below, path))


def _split(path: Path, folder: str) -> Split:
    check_folder(path / folder, f"RSCD's folder '{folder}'")
    names = image_names(path / folder)
    if not names:
        raise DataError("the folder has no pictures", where=path / folder)
    labels: list[int] = []
    refused: list[str] = []
    for name in names:
        try:
            labels.append(_label(name))
        except DataError as error:
            refused.append(f"{name} ({error.what})")
    if refused:
        raise _refusal(path / folder, refused, len(names))
    return Split(tuple(f"{folder}/{name}" for name in names), np.array(labels, dtype=np.int64))


def _label(name: str) -> int:
    """The file name decides; a class folder around it must say the same."""
    *folders, file_name = name.split("/")
    label = parse_rscd_name(file_name).label.name
    for folder in folders:
        if _LABEL_OF_FOLDER.get(folder, label) != label:
            raise DataError("its name and its folder disagree")
    return _INDEX[label]


def _refusal(folder: Path, refused: list[str], total: int) -> DataError:
    shown = "; ".join(refused[:5]) + ("; ..." if len(refused) > 5 else "")
    return DataError(
        f"{len(refused)} of {total} pictures have no RSCD label",
        where=folder,
        got=shown,
        expected="202201252341355-wet-asphalt-smooth.jpg in a folder of the same label",
        fix="move them away, or rename them",
    )
