"""Which kind of data set lies at a path."""

from __future__ import annotations

from pathlib import Path

from edge_road.conditions import STATES, state_of
from edge_road.datasets.cifar import TEST_FILE
from edge_road.datasets.listing import folders_in
from edge_road.datasets.rscd import FOLDERS
from edge_road.datasets.shards import SHARDS_FILE
from edge_road.datasets.svhn import FILES
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

_KINDS: dict[str, type[FolderData | CsvData | RscdData | ShardData | Cifar10Data | SvhnData]] = {
    "folder": FolderData,
    "csv": CsvData,
    "rscd": RscdData,
    "shards": ShardData,
    "cifar10": Cifar10Data,
    "svhn": SvhnData,
}


def guess_kind(path: Path) -> str:
    """By what lies there: a table, RSCD's folders, shards, CIFAR-10, SVHN; else class folders."""
    if path.is_file():
        return "csv"
    if all((path / folder).is_dir() for folder in FOLDERS.values()) or _is_part_of_rscd(path):
        return "rscd"
    marks = {"shards": SHARDS_FILE, "cifar10": TEST_FILE, "svhn": FILES["test"]}
    return next((kind for kind, name in marks.items() if (path / name).is_file()), "folder")


def guess_data(path: Path) -> DataSettings:
    if not path.exists():
        raise DataError("there is no data set", where=path)
    kind = guess_kind(path)
    classes = {"classes": guess_classes(path)} if kind == "folder" else {}
    return _KINDS[kind].model_validate({"kind": kind, "path": path, **classes})


def settings_at(path: Path, like: DataSettings, classes: tuple[str, ...]) -> DataSettings:
    """A data set elsewhere: read as `like` when it is of that kind, else by what lies there, as `classes`."""
    kind = guess_kind(path)
    if kind == like.kind:
        return like.model_copy(update={"path": path})
    named = {"classes": classes} if kind in ("folder", "csv") else {}
    return _KINDS[kind].model_validate({"kind": kind, "path": path, **named})


def guess_classes(path: Path) -> tuple[str, ...]:
    """The folders that are named like a class; dry, wet and icy when there are no finer ones."""
    known = tuple(name for name in folders_in(path) if _is_class(name))
    return STATES if set(known) <= set(STATES) else known


def _is_part_of_rscd(path: Path) -> bool:
    """What lacks the other folders shall be told so; `train/dry/` is another's way to split."""
    train = path / FOLDERS["train"]
    return train.is_dir() and set(STATES).isdisjoint([*folders_in(path), *folders_in(train)])


def _is_class(name: str) -> bool:
    try:
        state_of(name)
    except DataError:
        return False
    return True
