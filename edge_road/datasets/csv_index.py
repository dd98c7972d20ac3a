"""A table of pictures: `file,label` and, if wanted, `split` and `group` (a drive, a day, a place)."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edge_road.conditions import ClassList
from edge_road.datasets.decode import IMAGE_SUFFIXES
from edge_road.datasets.draws import grouped_parts, stratified_splits
from edge_road.datasets.folder import files_below
from edge_road.datasets.index import SPLITS, Fault, Labels, RoadDataset, Split
from edge_road.datasets.listing import check_folder
from edge_road.datasets.relabel import relabelled
from edge_road.errors import DataError, nearest, suggestion
from edge_road.recipe_data import CsvData

COLUMNS = ("file", "label", "split", "group")


class Row(NamedTuple):
    key: str
    label: int
    split: str = ""
    group: str = ""


@dataclass(frozen=True)
class Table:
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...]
    columns: tuple[str, ...]


def open_csv(settings: CsvData, path: Path) -> RoadDataset:
    classes = ClassList(settings.classes)
    root = pictures_root(settings, path)
    table = read_table(path, root, classes)
    if table.faults:
        raise _refusal(path, table)
    if settings.folds and "split" in table.columns:
        raise DataError(
            "a table that names its splits has no folds",
            where=path,
            got=f"data.folds = {settings.folds}",
            fix="leave out its column `split`, or the folds (to compare methods: --seeds)",
        )
    splits = splits_of(table, classes, settings, path)
    _check_training_classes(splits["train"], classes, path)
    return relabelled(files_below(root, classes, splits), settings.labels)


def pictures_root(settings: CsvData, path: Path) -> Path:
    root = path.parent / settings.root.expanduser()
    check_folder(root, "the folder of the table's pictures")
    return root


def read_table(path: Path, root: Path, classes: ClassList) -> Table:
    """Every row that names a present picture and a known class; a reason for every other one."""
    rows: dict[str, Row] = {}
    split_of_group: dict[str, str] = {}
    faults: list[Fault] = []
    lines = _lines(path)
    columns = tuple(next(lines, (0, []))[1])
    _check_columns(columns, path)
    index = {name: position for position, name in enumerate(classes.names)}
    for number, fields in lines:
        cells = dict(zip(columns, fields))
        reason = _fault_of(cells, len(fields) - len(columns), root, index, rows)
        reason = reason or _torn_group(cells, split_of_group)
        if reason:
            faults.append(Fault(cells.get("file", ""), f"line {number}: {reason}", _hint(cells, index)))
        else:
            key = cells["file"]
            rows[key] = Row(key, index[cells["label"]], cells.get("split", ""), cells.get("group", ""))
    return Table(tuple(rows.values()), tuple(faults), columns)


def splits_of(table: Table, classes: ClassList, settings: CsvData, path: Path) -> dict[str, Split]:
    if not table.rows:
        raise DataError("the table names no pictures", where=path)
    labels_N = np.array([row.label for row in table.rows], dtype=np.int64)
    if "split" in table.columns:
        parts_N = np.array([SPLITS.index(row.split) for row in table.rows], dtype=np.int64)
        return _by_part(table, labels_N, parts_N, path)
    if "group" in table.columns:
        groups_N = np.unique(np.array([row.group for row in table.rows]), return_inverse=True)[1]
        return _by_part(
            table, labels_N, grouped_parts(groups_N.astype(np.int64), labels_N, settings, path), path
        )
    keys = [[row.key for row in table.rows if row.label == label] for label in range(len(classes))]
    return stratified_splits(keys, classes, settings, path)


def _by_part(table: Table, labels_N: Labels, parts_N: Labels, path: Path) -> dict[str, Split]:
    every = Split(tuple(row.key for row in table.rows), labels_N)
    splits = {name: every.take(np.flatnonzero(parts_N == part)) for part, name in enumerate(SPLITS)}
    if empty := [name for name in SPLITS if not len(splits[name])]:
        raise DataError("a split has no pictures", where=path, got=", ".join(empty))
    return splits


def _check_training_classes(train: Split, classes: ClassList, path: Path) -> None:
    counts_C = np.bincount(train.labels_N, minlength=len(classes))
    if empty := [name for name, count in zip(classes.names, counts_C) if not count]:
        raise DataError("classes have no training pictures", where=path, got=", ".join(empty))


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row that is not empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells:
                    yield reader.line_num, [cell.strip() for cell in cells]
    except OSError as error:
        raise DataError("the table cannot be read", where=path, got=error.strerror) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(
            "the table is not CSV in UTF-8",
            where=path,
            got=error,
            expected="a table with file,label in its first line, or a folder with a folder for each class",
        ) from None


def _check_columns(columns: tuple[str, ...], path: Path) -> None:
    foreign = [name for name in columns if name not in COLUMNS]
    missing = [name for name in ("file", "label") if name not in columns]
    if foreign or missing or len(set(columns)) < len(columns):
        raise DataError(
            "the table's first line does not name its columns",
            where=path,
            got=",".join(columns)[:200] or "an empty file",
            expected="file,label and, if wanted, split and group",
            fix=suggestion(foreign[0], COLUMNS) if foreign else None,
        )


def _fault_of(
    cells: dict[str, str], surplus: int, root: Path, index: dict[str, int], rows: dict[str, Row]
) -> str | None:
    if surplus:
        return f"{abs(surplus)} {'more' if surplus > 0 else 'fewer'} cells than columns"
    key, label = cells["file"], cells["label"]
    if label not in index:
        return f"no class '{label}'"
    if "split" in cells and cells["split"] not in SPLITS:
        return f"no split '{cells['split']}'; one of {', '.join(SPLITS)}"
    if "group" in cells and not cells["group"]:
        return "no group"
    if key in rows:
        same = rows[key] == Row(key, index[label], cells.get("split", ""), cells.get("group", ""))
        return f"listed twice{'' if same else ', with different labels, splits or groups'}"
    return _fault_of_file(key, root)


def _torn_group(cells: dict[str, str], split_of_group: dict[str, str]) -> str | None:
    if not {"split", "group"}.issubset(cells):
        return None
    group, split = cells["group"], cells["split"]
    first = split_of_group.setdefault(group, split)
    return None if split == first else f"the group '{group}' is in the split '{first}' already"


def _fault_of_file(key: str, root: Path) -> str | None:
    parts = key.split("/")
    if key.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
        return "not a plain path below the pictures' folder"
    if not key.lower().endswith(IMAGE_SUFFIXES):
        return "not a picture's name; one that ends in " + ", ".join(IMAGE_SUFFIXES)
    return None if os.path.isfile(f"{root}/{key}") else "the file is not there"


def _hint(cells: dict[str, str], index: dict[str, int]) -> str | None:
    label = cells.get("label", "")
    match = None if label in index else nearest(label, index)
    return f"did you mean '{match}'?" if match else None


def _refusal(path: Path, table: Table) -> DataError:
    shown = [f"{fault.key or '(no file)'}: {fault.reason}" for fault in table.faults[:5]]
    return DataError(
        f"{len(table.faults)} of {len(table.faults) + len(table.rows)} rows cannot be used",
        where=path,
        got="; ".join(shown) + ("; ..." if len(table.faults) > 5 else ""),
        fix=table.faults[0].fix or "repair or remove them; `edge-road data check` lists them all",
    )
