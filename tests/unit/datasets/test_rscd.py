"""RSCD's three folders become a data set of 27 classes; names that lie or are foreign are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.conditions import RSCD_CLASSES, RSCD_LABELS, STATES
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.datasets.counts import count_table
from edge_road.datasets.index import SPLITS
from edge_road.datasets.relabel import FRICTIONS, friction_of
from edge_road.datasets.rscd import day_of, index_names
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


def open_at(root: Path, **settings: object) -> RoadDataset:
    return open_dataset(RscdData.model_validate({"kind": "rscd", "path": root, **settings}))


def make_days(root: Path, days: int = 30) -> Path:
    """Every class on many days, in the official split's manner: each day in all three folders."""
    for label in RSCD_CLASSES:
        for day in range(1, days + 1):
            add(root, f"train/{label.replace('-', '_')}/202201{day:02d}1200001-{label}.jpg")
        add(root, f"vali_20k/202201011200002-{label}.jpg")
        add(root, f"test_50k/202201021200003-{label}.jpg")
    return root


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


def test_all_real_file_names_find_their_label(shared_data: Path) -> None:
    names = (shared_data / "rscd_filenames.txt").read_text().split()
    named = index_names([f"test_50k/{name}" for name in names])
    assert not named.faults
    assert len(named.split) == len(names) > 3000
    assert all(
        key.endswith(f"-{RSCD_CLASSES[label]}.jpg")
        for key, label in zip(named.split.keys, named.split.labels_N)
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_the_per_day_split_lets_no_day_cross(tmp_path: Path, seed: int) -> None:
    official = open_at(make_days(tmp_path))
    dataset = open_at(tmp_path, split="per_day", seed=seed)
    days = [{day_of(key) for key in dataset.splits[name].keys} for name in SPLITS]
    assert sum(map(len, days)) == len(set.union(*days)) == 30
    assert {key for split in dataset.splits.values() for key in split.keys} == {
        key for split in official.splits.values() for key in split.keys
    }
    total = sum(len(split) for split in dataset.splits.values())
    for name, share in zip(SPLITS, (0.8, 0.1, 0.1)):
        assert abs(len(dataset.splits[name]) / total - share) < 0.06
    for split in dataset.splits.values():
        for key, label in zip(split.keys, split.labels_N):
            assert key.endswith(f"-{RSCD_CLASSES[label]}.jpg")


def test_two_days_are_too_few_for_a_per_day_split(tmp_path: Path) -> None:
    make_days(tmp_path, days=2)
    with pytest.raises(DataError, match="too few days"):
        open_at(tmp_path, split="per_day")


@pytest.mark.parametrize(("labels", "names"), [("friction6", FRICTIONS), ("state3", STATES)])
def test_27_labels_become_6_frictions_or_3_states(
    tmp_path: Path, labels: str, names: tuple[str, ...]
) -> None:
    fine, coarse = open_at(make_rscd(tmp_path)), open_at(tmp_path, labels=labels)
    assert coarse.classes.names == names
    assert coarse.digest != fine.digest
    for name in SPLITS:
        assert coarse.splits[name].keys == fine.splits[name].keys
        for fine_label, label in zip(fine.splits[name].labels_N, coarse.splits[name].labels_N):
            of = RSCD_LABELS[fine_label]
            assert names[label] == (of.friction if labels == "friction6" else of.state)


def test_states_cannot_be_split_into_frictions() -> None:
    with pytest.raises(DataError, match="'icy' covers several frictions"):
        friction_of("icy")


def test_class_counts_are_printed_for_every_split(tmp_path: Path) -> None:
    table = count_table(open_at(make_rscd(tmp_path), labels="state3")).splitlines()
    assert table[0].split() == ["class", "train", "validation", "test"]
    assert table[1].split() == ["dry", "16", "8", "8"]
    assert table[-1].split() == ["sum", "54", "27", "27"]
