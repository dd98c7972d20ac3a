"""One folder per class, split into train, validation and test by a seeded, stratified draw."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from edge_road.conditions import ClassList
from edge_road.datasets.decode import IMAGE_SUFFIXES, decode_image, read_file
from edge_road.datasets.draws import stratified_splits
from edge_road.datasets.index import RoadDataset, Split
from edge_road.datasets.listing import check_folder, folders_in, image_names
from edge_road.datasets.relabel import relabelled
from edge_road.errors import DataError, nearest
from edge_road.frames import Image
from edge_road.recipe_data import FolderData

ONE_LEVEL_UP = (
    "put the folders of the classes side by side, or write a table with file,label,split (docs/data.md)"
)


def open_folder(settings: FolderData, path: Path) -> RoadDataset:
    classes = ClassList(settings.classes)
    check_folder(path, "the data set's folder")
    keys = [_keys_of_class(path, name) for name in classes.names]
    splits = stratified_splits(keys, classes, settings, path)
    return relabelled(files_below(path, classes, splits), settings.labels)


def files_below(path: Path, classes: ClassList, splits: Mapping[str, Split]) -> RoadDataset:
    """A data set whose keys are paths below a folder."""
    return RoadDataset(classes, splits, partial(read_below, path), content=partial(content_below, path))


def read_below(path: Path, key: str) -> Image:
    return decode_image(content_below(path, key), path / key)


def content_below(path: Path, key: str) -> bytes:
    return read_file(path / key)


def _keys_of_class(path: Path, name: str) -> list[str]:
    if name not in (present := folders_in(path)):
        raise DataError(
            f"the class '{name}' has no folder",
            where=path,
            got=", ".join(present) or "no folders",
            expected=name,
            fix=_one_level_down(path, name, present) or _how_to_name(name, nearest(name, present)),
        )
    keys = [f"{name}/{image}" for image in image_names(path / name)]
    if not keys:
        raise DataError(
            f"the class '{name}' has no pictures",
            where=path / name,
            expected="files that end in " + ", ".join(IMAGE_SUFFIXES),
        )
    return keys


def _one_level_down(path: Path, name: str, present: list[str]) -> str | None:
    """train/dry/ and test/dry/, or drive1/dry/ and drive2/dry/."""
    around = [folder for folder in present if name in folders_in(path / folder)]
    if not around:
        return None
    listed = ", ".join(around[:3]) + (", ..." if len(around) > 3 else "")
    return f"'{name}' lies in {listed}; {ONE_LEVEL_UP}"


def _how_to_name(name: str, present: str | None) -> str:
    first = "make the folder" if present is None else f"did you mean '{present}'? rename it to '{name}'"
    return f"{first}, or name the `classes` in the recipe's [data]"
