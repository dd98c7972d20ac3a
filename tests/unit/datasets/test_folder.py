"""A folder per class becomes three stable, disjoint, stratified sets; what is wrong with it is named."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from edge_road.datasets import open_dataset
from edge_road.datasets.index import SPLITS, RoadDataset
from edge_road.errors import ConfigError, DataError
from edge_road.recipe_data import FolderData


def make_folders(root: Path, **counts: int) -> Path:
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for number in range(count):
            (root / name / f"{number:03d}.jpg").touch()
    return root


def open_folders(root: Path, **settings: object) -> RoadDataset:
    return open_dataset(FolderData.model_validate({"kind": "folder", "path": root, **settings}))


def split_of_keys(dataset: RoadDataset) -> dict[str, str]:
    return {key: name for name in SPLITS for key in dataset.splits[name].keys}


def test_three_disjoint_splits_hold_every_picture_in_its_class_share(tmp_path: Path) -> None:
    dataset = open_folders(make_folders(tmp_path, dry=100, wet=50, icy=10))
    assert {name: np.bincount(dataset.splits[name].labels_N).tolist() for name in SPLITS} == {
        "train": [60, 30, 6],
        "validation": [20, 10, 2],
        "test": [20, 10, 2],
    }
    assert len(split_of_keys(dataset)) == 160 == sum(len(split) for split in dataset.splits.values())


def test_labels_follow_the_order_of_the_recipes_classes(tmp_path: Path) -> None:
    dataset = open_folders(make_folders(tmp_path, dry=5, ice=5), classes=("ice", "dry"))
    for split in dataset.splits.values():
        assert [dataset.classes.names[label] for label in split.labels_N] == [
            key.split("/")[0] for key in split.keys
        ]


def test_the_split_depends_on_names_and_seed_alone(tmp_path: Path) -> None:
    first = make_folders(tmp_path / "a", dry=40, wet=40, icy=40)
    second = make_folders(tmp_path / "elsewhere", icy=40, wet=40, dry=40)
    assert split_of_keys(open_folders(first)) == split_of_keys(open_folders(second))
    assert open_folders(first).digest == open_folders(second).digest
    assert split_of_keys(open_folders(first)) != split_of_keys(open_folders(first, seed=1))


def test_one_more_picture_moves_hardly_any_other(tmp_path: Path) -> None:
    before = split_of_keys(open_folders(make_folders(tmp_path, dry=200, wet=20, icy=20)))
    (tmp_path / "dry" / "new.jpg").touch()
    after = split_of_keys(open_folders(tmp_path))
    assert sum(after[key] != name for key, name in before.items()) <= 2


def test_pictures_lie_in_sub_folders_and_have_any_known_suffix(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=3, wet=3, icy=3)
    deep = tmp_path / "dry" / "2024" / "january"
    deep.mkdir(parents=True)
    for name in ("a.JPG", "b.jpeg", "c.png", "d.bmp", "e.webp"):
        (deep / name).touch()
    for name in (".hidden.jpg", "notes.txt", "clip.mp4"):
        (deep / name).touch()
    (tmp_path / "dry" / ".cache").mkdir()
    (tmp_path / "dry" / ".cache" / "x.jpg").touch()
    keys = split_of_keys(open_folders(tmp_path))
    assert {k for k in keys if k.startswith("dry/")} == {f"dry/00{i}.jpg" for i in range(3)} | {
        f"dry/2024/january/{name}" for name in ("a.JPG", "b.jpeg", "c.png", "d.bmp", "e.webp")
    }


def test_links_that_lead_back_and_pipes_are_passed_by(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=3, wet=3, icy=3)
    (tmp_path / "dry" / "again").symlink_to(tmp_path / "dry")
    (tmp_path / "dry" / "up").symlink_to(tmp_path)
    (tmp_path / "dry" / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    os.mkfifo(tmp_path / "dry" / "pipe.jpg")
    keys = [key for key in split_of_keys(open_folders(tmp_path)) if key.startswith("dry/")]
    assert sorted(keys) == ["dry/000.jpg", "dry/001.jpg", "dry/002.jpg"]


def test_a_class_folder_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    make_folders(tmp_path / "data", dry=3, wet=3)
    make_folders(tmp_path / "disk", snow=4)
    (tmp_path / "data" / "icy").symlink_to(tmp_path / "disk" / "snow")
    keys = [key for key in split_of_keys(open_folders(tmp_path / "data")) if key.startswith("icy/")]
    assert len(keys) == 4


def test_a_relative_path_counts_from_the_base(tmp_path: Path) -> None:
    make_folders(tmp_path / "photos", dry=3, wet=3, icy=3)
    settings = FolderData(kind="folder", path=Path("photos"))
    assert len(open_dataset(settings, base=tmp_path).splits["train"]) == 3


@pytest.mark.parametrize(
    ("counts", "settings", "words"),
    [
        ({"dry": 5, "wet": 5, "icey": 5}, {}, ["'icy' has no folder", "did you mean 'icey'?"]),
        ({"dry": 5, "wet": 5}, {}, ["'icy' has no folder", "dry, wet"]),
        ({"dry": 5, "wet": 0, "icy": 5}, {}, ["'wet' has no pictures", ".jpg"]),
        (
            {"dry": 5, "wet": 5, "icy": 2},
            {},
            ["'icy' has too few pictures", "3 or more"],
        ),
        ({"dry": 5, "sandy": 5}, {"classes": ("dry", "sandy")}, ["no road state", "'sandy'"]),
        ({"dry": 5}, {"classes": ("dry",)}, ["two or more different classes"]),
    ],
)
def test_what_is_wrong_with_the_folders_is_said(
    tmp_path: Path, counts: dict[str, int], settings: dict[str, object], words: list[str]
) -> None:
    make_folders(tmp_path, **counts)
    with pytest.raises(DataError) as error:
        open_folders(tmp_path, **settings)
    for word in words:
        assert word in str(error.value)
    assert error.value.exit_code == ConfigError.exit_code == 2


def test_a_missing_folder_and_a_file_in_its_place_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not there") as caught:
        open_folders(tmp_path / "nowhere")
    assert "--data" in caught.value.details["to do"]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is not a folder"):
        open_folders(tmp_path / "file")


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=3, wet=3, icy=3)
    with open(os.fsencode(tmp_path / "dry") + b"/\xff\xfe.jpg", "wb"):
        pass
    with pytest.raises(DataError, match="UTF-8"):
        open_folders(tmp_path)


def test_the_digest_notices_every_change_of_the_index(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=10, wet=10, icy=10)
    digests = {open_folders(tmp_path).digest, open_folders(tmp_path, seed=3).digest}
    (tmp_path / "dry" / "000.jpg").rename(tmp_path / "dry" / "renamed.jpg")
    digests.add(open_folders(tmp_path).digest)
    (tmp_path / "dry" / "renamed.jpg").rename(tmp_path / "wet" / "renamed.jpg")
    digests.add(open_folders(tmp_path).digest)
    assert len(digests) == 4


def test_every_picture_is_tested_in_exactly_one_fold_of_its_class_share(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=52, wet=23, icy=11)
    folds = [open_folders(tmp_path, folds=5, fold=fold) for fold in range(5)]
    tested = [key for dataset in folds for key in dataset.splits["test"].keys]
    assert len(tested) == len(set(tested)) == 86
    for dataset in folds:
        assert len(split_of_keys(dataset)) == 86 == sum(len(split) for split in dataset.splits.values())
        for split, share in {"test": 0.2, "validation": 0.2, "train": 0.6}.items():
            expected_C = share * np.array([52, 23, 11])
            assert np.abs(np.bincount(dataset.splits[split].labels_N) - expected_C).max() < 2


def test_folds_draw_their_validation_pictures_independently(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=100, wet=100, icy=100)
    first, second = (set(open_folders(tmp_path, folds=5, fold=f).splits["validation"].keys) for f in (0, 1))
    shared = len(first & second) / len(first)
    assert 0.05 < shared < 0.45  # 0.2 by chance; 0.8 or more had they been ranked alike


def test_folds_follow_the_seed_and_keep_their_place_when_a_picture_comes(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=200, wet=20, icy=20)
    before = split_of_keys(open_folders(tmp_path, folds=5, fold=3))
    assert split_of_keys(open_folders(tmp_path, folds=5, fold=3)) == before
    assert split_of_keys(open_folders(tmp_path, folds=5, fold=3, seed=1)) != before
    (tmp_path / "dry" / "new.jpg").touch()
    after = split_of_keys(open_folders(tmp_path, folds=5, fold=3))
    assert sum(after[key] != name for key, name in before.items()) <= 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"folds": 1}, "folds must be 0"),
        ({"folds": 5, "fold": 5}, "fold must be below folds: 0 to 4"),
        ({"fold": 1}, "fold must be below folds: 0 to 0"),
        ({"folds": -1}, "greater than or equal to 0"),
        ({"folds": 2, "validation": 0.45}, "leave 10 %"),
    ],
)
def test_folds_that_cannot_be_are_refused(tmp_path: Path, settings: dict[str, object], words: str) -> None:
    make_folders(tmp_path, dry=10, wet=10, icy=10)
    with pytest.raises(ValueError, match=words):
        open_folders(tmp_path, **settings)


def test_a_class_smaller_than_the_number_of_folds_is_named(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=10, wet=4, icy=10)
    with pytest.raises(DataError, match="'wet' has too few pictures"):
        open_folders(tmp_path, folds=5, fold=0)


def test_three_pictures_are_too_few_where_half_of_them_are_tested(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=10, wet=3, icy=10)
    with pytest.raises(DataError) as error:
        open_folders(tmp_path, folds=2, fold=1)
    assert error.value.details["expected"].startswith("4 or more")


def test_too_few_pictures_come_with_the_number_that_is_enough(tmp_path: Path) -> None:
    make_folders(tmp_path, dry=10, wet=2, icy=10)
    with pytest.raises(DataError) as error:
        open_folders(tmp_path)
    assert error.value.details["expected"].startswith("3 or more")
    (tmp_path / "wet" / "third.jpg").touch()
    assert all(len(split) for split in open_folders(tmp_path).splits.values())


def test_a_folder_of_another_spelling_is_to_be_renamed(tmp_path: Path) -> None:
    make_folders(tmp_path, Dry=5, wet=5, icy=5)
    with pytest.raises(DataError, match="'dry' has no folder") as error:
        open_folders(tmp_path)
    assert "rename it to 'dry'" in error.value.details["to do"]


def test_classes_one_level_down_are_told_from_missing_ones(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        make_folders(tmp_path / split, dry=3, wet=3, icy=3)
    with pytest.raises(DataError) as caught:
        open_folders(tmp_path)
    assert "'dry' lies in test, train, val; put the folders" in caught.value.details["to do"]
    assert "file,label,split" in caught.value.details["to do"]
