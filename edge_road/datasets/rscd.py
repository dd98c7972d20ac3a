"""RSCD as published: three folders, labels from the file names, a million names in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge_road.conditions import RSCD_CLASSES, ClassList, parse_rscd_name
from edge_road.datasets.draws import grouped_parts
from edge_road.datasets.folder import files_below
from edge_road.datasets.index import SPLITS, Fault, RoadDataset, Split
from edge_road.datasets.listing import check_folder, image_names
from edge_road.datasets.relabel import relabelled
from edge_road.errors import DataError
from edge_road.recipe_data import DrawnSplits, RscdData

FOLDERS = {"train": "train", "validation": "vali_20k", "test": "test_50k"}
_LABEL_OF_FOLDER = {name.replace("-", "_"): name for name in RSCD_CLASSES}
_INDEX = {name: index for index, name in enumerate(RSCD_CLASSES)}
_CLASSES = ClassList(RSCD_CLASSES)


def open_rscd(settings: RscdData, path: Path) -> RoadDataset:
    check_folder(path, "the data set's folder")
    splits = {split: _strict_split(path, folder) for split, folder in FOLDERS.items()}
    if settings.split == "per_day":
        splits = per_day_splits(splits, settings, path)
    counts_C = np.bincount(splits["train"].labels_N, minlength=len(RSCD_CLASSES))
    if empty := [name for name, count in zip(RSCD_CLASSES, counts_C) if not count]:
        raise DataError(
            "classes have no training pictures",
            where=path,
            got=", ".join(empty),
            fix="try another seed, or split = 'official'" if settings.split == "per_day" else None,
        )
    return relabelled(files_below(path, _CLASSES, splits), settings.labels)


@dataclass(frozen=True, eq=False)
class Named:
    """Pictures whose names tell a label, and those whose names do not."""

    split: Split
    faults: tuple[Fault, ...]


def list_split(path: Path, folder: str) -> Named:
    check_folder(path / folder, f"RSCD's folder '{folder}'")
    return index_names([f"{folder}/{name}" for name in image_names(path / folder)])


def index_names(keys: Sequence[str]) -> Named:
    known: list[str] = []
    labels: list[int] = []
    faults: list[Fault] = []
    for key in keys:
        try:
            labels.append(_label(key))
            known.append(key)
        except DataError as error:
            faults.append(Fault(key, error.what, error.details.get("to do")))
    return Named(Split(tuple(known), np.array(labels, dtype=np.int64)), tuple(faults))


def per_day_splits(splits: dict[str, Split], settings: RscdData, where: object = None) -> dict[str, Split]:
    """All pictures anew, so that no day is in two splits and classes keep their shares."""
    keys = [key for name in SPLITS for key in splits[name].keys]
    labels_N = np.concatenate([splits[name].labels_N for name in SPLITS])
    days, days_N = np.unique(np.array([day_of(key) for key in keys]), return_inverse=True)
    if len(days) < len(SPLITS):
        raise DataError("too few days for a per-day split", where=where, got=", ".join(days.tolist()))
    draw = DrawnSplits(validation=settings.validation, test=settings.test, seed=settings.seed)
    parts_N = grouped_parts(days_N.astype(np.int64), labels_N, draw, where)
    every = Split(tuple(keys), labels_N)
    return {name: every.take(np.flatnonzero(parts_N == part)) for part, name in enumerate(SPLITS)}


def day_of(key: str) -> str:
    """YYYYMMDD, the beginning of the file's name."""
    start = key.rfind("/") + 1
    return key[start : start + 8]


def _strict_split(path: Path, folder: str) -> Split:
    named = list_split(path, folder)
    if named.faults:
        raise _refusal(path / folder, named)
    if not len(named.split):
        raise DataError("the folder has no pictures", where=path / folder)
    return named.split


def _label(key: str) -> int:
    """The file name decides; a class folder around it must say the same."""
    *folders, file_name = key.split("/")
    label = parse_rscd_name(file_name).label.name
    for folder in folders:
        if _LABEL_OF_FOLDER.get(folder, label) != label:
            raise DataError("its name and its folder disagree")
    return _INDEX[label]


def _refusal(folder: Path, named: Named) -> DataError:
    shown = "; ".join(f"{fault.key} ({fault.reason})" for fault in named.faults[:5])
    return DataError(
        f"{len(named.faults)} of {len(named.faults) + len(named.split)} pictures have no RSCD label",
        where=folder,
        got=shown + ("; ..." if len(named.faults) > 5 else ""),
        expected="202201252341355-wet-asphalt-smooth.jpg in a folder of the same label",
        fix="move them away, or rename them; `edge-road data check` lists them all",
    )
