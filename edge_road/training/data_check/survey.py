"""What a data set holds by its names alone: entries with label and split, and names that are wrong."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edge_road.conditions import RSCD_CLASSES, STATE_OF_FRICTION, STATES, ClassList
from edge_road.datasets.csv_index import pictures_root, read_table, splits_of
from edge_road.datasets.decode import FOREIGN_SUFFIXES, IMAGE_SUFFIXES, VIDEO_SUFFIXES
from edge_road.datasets.draws import stratified_splits
from edge_road.datasets.folder import ONE_LEVEL_UP, files_below
from edge_road.datasets.index import SPLITS, Fault, Labels, RoadDataset, Split
from edge_road.datasets.listing import check_folder, folders_in, image_names
from edge_road.datasets.opening import open_dataset
from edge_road.datasets.rscd import FOLDERS, list_split, per_day_splits
from edge_road.errors import DataError
from edge_road.recipe_data import CsvData, DataSettings, FolderData, RscdData
from edge_road.training.data_check.findings import Finding

KNOWN_NAMES = tuple(
    dict.fromkeys((*STATES, *STATE_OF_FRICTION, *RSCD_CLASSES, *(n.replace("-", "_") for n in RSCD_CLASSES)))
)
LARGEST_RATIO = 10.0
_TYPO_LIKENESS = 0.65  # two swapped letters of three


@dataclass(frozen=True, eq=False)
class Survey:
    dataset: RoadDataset
    keys: tuple[str, ...]
    labels_N: Labels
    splits_N: Labels
    """positions in SPLITS"""
    findings: tuple[Finding, ...]


def survey(settings: DataSettings) -> Survey:
    """Goes on where opening for training would stop, so that all that is wrong is found at once."""
    findings: list[Finding] = []
    if isinstance(settings, FolderData):
        dataset = _folder(settings, settings.path, findings)
    elif isinstance(settings, RscdData):
        dataset = _rscd(settings, settings.path, findings)
    elif isinstance(settings, CsvData):
        dataset = _csv(settings, settings.path, findings)
    else:
        dataset = open_dataset(settings)
    findings += _class_findings(dataset)
    parts = [dataset.splits[name] for name in SPLITS]
    return Survey(
        dataset,
        tuple(key for part in parts for key in part.keys),
        np.concatenate([part.labels_N for part in parts]),
        np.repeat(np.arange(len(SPLITS)), [len(part) for part in parts]),
        tuple(findings),
    )


def _folder(settings: FolderData, path: Path, findings: list[Finding]) -> RoadDataset:
    check_folder(path, "the data set's folder")
    classes = ClassList(settings.classes)
    present = folders_in(path)
    findings += [_foreign_folder(path, name, classes) for name in present if name not in classes.names]
    there = [name for name in classes.names if name in present]
    keys = [
        [f"{name}/{image}" for image in image_names(path / name)] if name in there else []
        for name in classes.names
    ]
    findings += [finding for name in there for finding in _foreign_formats(path, name)]
    findings += _loose_pictures(path)
    splits = _or_all_in_train(lambda: stratified_splits(keys, classes, settings, path), keys, findings)
    return files_below(path, classes, splits)


def _foreign_folder(path: Path, name: str, classes: ClassList) -> Finding:
    count = len(image_names(path / name))
    left_out = "its one picture is left out" if count == 1 else f"its {count} pictures are left out"
    if not set(classes.names).isdisjoint(folders_in(path / name)):
        return Finding("unknown_folder", name, f"{left_out}; {ONE_LEVEL_UP}")
    for known in (classes.names, KNOWN_NAMES):
        if match := difflib.get_close_matches(name.lower(), known, n=1, cutoff=_TYPO_LIKENESS):
            return Finding("label_typo", name, f"{left_out}; did you mean '{match[0]}'?")
    return Finding("unknown_folder", name, left_out)


def _foreign_formats(path: Path, name: str) -> list[Finding]:
    return [
        Finding("foreign_format", f"{name}/{file}", f"left out; {_how_to_read(file)}")
        for file in image_names(path / name, (*FOREIGN_SUFFIXES, *VIDEO_SUFFIXES))
    ]


def _how_to_read(file: str) -> str:
    if file.lower().endswith(VIDEO_SUFFIXES):
        return "save frames of it as JPEG or PNG"
    return "rename it to .jpg" if file.lower().endswith(".jfif") else "save it as JPEG or PNG"


def _loose_pictures(path: Path) -> list[Finding]:
    """Beside the folders of the classes."""
    names = (entry.name for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
    loose = sorted(name for name in names if name.lower().endswith(IMAGE_SUFFIXES))
    return [Finding("loose", name, "left out; move it into the folder of its class") for name in loose]


def _or_all_in_train(
    draw: Callable[[], dict[str, Split]], keys: list[list[str]], findings: list[Finding]
) -> dict[str, Split]:
    try:
        return draw()
    except DataError as error:
        if all(keys):  # an empty class is told by its own finding
            findings.append(Finding("too_few", str(error.details.get("where", "")), error.what))
    labels = np.repeat(np.arange(len(keys)), [len(part) for part in keys]).astype(np.int64)
    nothing = Split((), labels[:0])
    train = Split(tuple(key for part in keys for key in part), labels)
    return {"train": train, "validation": nothing, "test": nothing}


def _rscd(settings: RscdData, path: Path, findings: list[Finding]) -> RoadDataset:
    check_folder(path, "the data set's folder")
    named = {split: list_split(path, folder) for split, folder in FOLDERS.items()}
    findings += [_no_label(fault) for part in named.values() for fault in part.faults]
    splits = {split: part.split for split, part in named.items()}
    if settings.split == "per_day":
        splits = per_day_splits(splits, settings, path)
    return files_below(path, ClassList(RSCD_CLASSES), splits)


def _csv(settings: CsvData, path: Path, findings: list[Finding]) -> RoadDataset:
    classes = ClassList(settings.classes)
    root = pictures_root(settings, path)
    table = read_table(path, root, classes)
    findings += [_no_label(fault) for fault in table.faults]
    keys = [[row.key for row in table.rows if row.label == label] for label in range(len(classes))]
    splits = _or_all_in_train(lambda: splits_of(table, classes, settings, path), keys, findings)
    return files_below(root, classes, splits)


def _no_label(fault: Fault) -> Finding:
    return Finding("no_label", fault.key, fault.reason + (f"; {fault.fix}" if fault.fix else ""))


def _class_findings(dataset: RoadDataset) -> list[Finding]:
    counts_C = sum(
        np.bincount(split.labels_N, minlength=len(dataset.classes)) for split in dataset.splits.values()
    )
    counts = dict(zip(dataset.classes.names, np.asarray(counts_C).tolist()))
    findings = [Finding("empty_class", name, "no pictures") for name, count in counts.items() if not count]
    present = {name: count for name, count in counts.items() if count}
    if present:
        small, large = min(present, key=present.__getitem__), max(present, key=present.__getitem__)
        ratio = present[large] / present[small]
        if ratio > LARGEST_RATIO:
            fewer = f"{present[small]} pictures, {ratio:.0f} times fewer than '{large}'"
            findings.append(Finding("imbalance", small, f"{fewer}; weigh or balance the classes"))
    return findings
