"""Which kind of data set lies at a path."""

from __future__ import annotations

from pathlib import Path

from edge_road.conditions import STATES, state_of
from edge_road.datasets.listing import folders_in
from edge_road.datasets.rscd import FOLDERS
from edge_road.datasets.shards import SHARDS_FILE
from edge_road.errors import DataError
from edge_road.recipe_data import (
    Cifar10Data,
    CsvData,
    DataSettings,
    FolderData,
    RscdData,
    ShardData,
    SvhnData,
)


def guess_data(path: Path) -> DataSettings:
    """By what lies there: a table, RSCD's folders, shards, CIFAR-10, SVHN; else class folders."""
    if path.is_file():
        return CsvData(kind="csv", path=path)
    if not path.is_dir():
        raise DataError("there is no data set", where=path)
    if all((path / folder).is_dir() for folder in FOLDERS.values()):
        return RscdData(kind="rscd", path=path)
    if (path / SHARDS_FILE).is_file():
        return ShardData(kind="shards", path=path)
    if (path / "test_batch.bin").is_file():
        return Cifar10Data(kind="cifar10", path=path)
    if (path / "test_32x32.mat").is_file():
        return SvhnData(kind="svhn", path=path)
    return FolderData(kind="folder", path=path, classes=guess_classes(path))


def guess_classes(path: Path) -> tuple[str, ...]:
    """The folders that are named like a class; dry, wet and icy when there are no finer ones."""
    known = tuple(name for name in folders_in(path) if _is_class(name))
    return STATES if set(known) <= set(STATES) else known


def _is_class(name: str) -> bool:
    try:
        state_of(name)
    except DataError:
        return False
    return True
