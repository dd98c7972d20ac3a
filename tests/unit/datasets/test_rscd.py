"""RSCD's three folders become a data set of 27 classes; names that lie or are foreign are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.conditions import RSCD_CLASSES
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.errors import DataError
from edge_road.recipe_data import RscdData


def make_rscd(root: Path, per_class: int = 2) -> Path:
    for number, label in enumerate(RSCD_CLASSES):
        for serial in range(per_class):
            name = f"2022010112{number:02d}00{serial}-{label}.jpg"
            add(root, f"train/{label.replace('-', '_')}/{name}")
        add(root, f"vali_20k/2022010212{number:02d}001-{label}.jpg")
        add(root, f"test_50k/2022010312{number:02d}001-{label}.jpg")
    return root


def add(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).touch()


def open_at(root: Path) -> RoadDataset:
    return open_dataset(RscdData(kind="rscd", path=root))


def test_labels_come_from_the_file_names(tmp_path: Path) -> None:
    dataset = open_at(make_rscd(tmp_path))
    assert dataset.classes.names == RSCD_CLASSES
    assert {name: len(split) for name, split in dataset.splits.items()} == {
        "train": 54,
        "validation": 27,
        "test": 27,
    }
    for split in dataset.splits.values():
        for key, label in zip(split.keys, split.labels_N):
            assert key.endswith(f"-{RSCD_CLASSES[label]}.jpg")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("train/fresh_snow/IMG_0001.jpg", ["1 of 55", "IMG_0001.jpg", "not an RSCD file name"]),
        ("vali_20k/202201021200001-wet-sand.jpg", ["1 of 28", "wet-sand", "27 RSCD labels"]),
        ("train/dry_mud/202201021200001-wet-mud.jpg", ["1 of 55", "dry_mud", "disagree"]),
    ],
)
def test_a_bad_name_is_refused_with_reason_and_count(tmp_path: Path, name: str, words: list[str]) -> None:
    make_rscd(tmp_path)
    add(tmp_path, name)
    with pytest.raises(DataError) as error:
        open_at(tmp_path)
    for word in words:
        assert word in str(error.value)


def test_files_that_are_no_pictures_are_passed_by(tmp_path: Path) -> None:
    make_rscd(tmp_path)
    add(tmp_path, "train/readme.txt")
    add(tmp_path, "test_50k/.DS_Store")
    assert len(open_at(tmp_path).splits["train"]) == 54


def test_a_missing_split_and_a_class_without_pictures_are_named(tmp_path: Path) -> None:
    make_rscd(tmp_path)
    for path in (tmp_path / "train" / "ice").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"(?s)no training pictures.*ice"):
        open_at(tmp_path)
    (tmp_path / "vali_20k").rename(tmp_path / "validation")
    with pytest.raises(DataError, match="vali_20k"):
        open_at(tmp_path)


def test_all_real_file_names_find_their_label(shared_data: Path, tmp_path: Path) -> None:
    make_rscd(tmp_path)
    names = (shared_data / "rscd_filenames.txt").read_text().split()
    for name in names:
        add(tmp_path, f"test_50k/{name}")
    assert len(open_at(tmp_path).splits["test"]) == len(names) + 27
