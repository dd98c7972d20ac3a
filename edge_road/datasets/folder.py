"""One folder per class, split into train, validation and test by a seeded, stratified draw."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import numpy as np

from edge_road.conditions import ClassList
from edge_road.datasets.decode import IMAGE_SUFFIXES, read_image
from edge_road.datasets.index import SPLITS, RoadDataset, Split
from edge_road.datasets.listing import check_folder, folders_in, image_names
from edge_road.errors import DataError, suggestion
from edge_road.frames import Image
from edge_road.recipe_data import FolderData


def open_folder(settings: FolderData, path: Path) -> RoadDataset:
    classes = ClassList(settings.classes)
    check_folder(path, "the data set's folder")
    keys = {name: _keys_of_class(path, name) for name in classes.names}
    parts = [_split_of_class(name, keys[name], settings, path) for name in classes.names]
    splits = {split: _join([part[split] for part in parts]) for split in SPLITS}
    return RoadDataset(classes, splits, partial(read_below, path))


def read_below(path: Path, key: str) -> Image:
    return read_image(path / key)


def _keys_of_class(path: Path, name: str) -> list[str]:
    if name not in (present := folders_in(path)):
        raise DataError(
            f"the class '{name}' has no folder",
            where=path,
            got=", ".join(present) or "no folders",
            expected=name,
            fix=suggestion(name, present) or "make the folder, or name the `classes` in the recipe's [data]",
        )
    keys = [f"{name}/{image}" for image in image_names(path / name)]
    if not keys:
        raise DataError(
            f"the class '{name}' has no pictures",
            where=path / name,
            expected="files that end in " + ", ".join(IMAGE_SUFFIXES),
        )
    return keys


def _split_of_class(name: str, keys: list[str], settings: FolderData, path: Path) -> dict[str, list[str]]:
    tests = _test_part(_ranked(keys, f"{settings.seed}"), settings)
    rest = [key for key in _ranked(keys, _validation_seed(settings)) if key not in tests]
    validations = max(1, round(len(keys) * settings.validation))
    if validations >= len(rest) or not tests:
        raise DataError(
            f"the class '{name}' has too few pictures for three splits", where=path / name, got=len(keys)
        )
    return {"test": list(tests), "validation": rest[:validations], "train": rest[validations:]}


def _ranked(keys: list[str], seed: str) -> list[str]:
    """Ranked by a hash of seed and key, so that one new picture moves hardly any other."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{seed}\n{key}".encode()).digest())


def _test_part(ranked: list[str], settings: FolderData) -> dict[str, None]:
    if not settings.folds:
        return dict.fromkeys(ranked[: max(1, round(len(ranked) * settings.test))])
    first, end = (len(ranked) * k // settings.folds for k in (settings.fold, settings.fold + 1))
    return dict.fromkeys(ranked[first:end])


def _validation_seed(settings: FolderData) -> str:
    """Each fold draws anew: the folds' choices shall not rest on the same few pictures."""
    return f"{settings.seed}\nfold {settings.fold}" if settings.folds else f"{settings.seed}"


def _join(keys_of_classes: list[list[str]]) -> Split:
    keys = tuple(key for part in keys_of_classes for key in sorted(part))
    labels = np.repeat(np.arange(len(keys_of_classes)), [len(part) for part in keys_of_classes])
    return Split(keys, labels.astype(np.int64))
