"""A table of pictures becomes a data set; every row that cannot is named with line and reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge_road.datasets import RoadDataset, open_dataset
from edge_road.datasets.index import SPLITS
from edge_road.errors import DataError
from edge_road.recipe_data import CsvData


def write_table(folder: Path, text: str, name: str = "road.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def open_table(path: Path, **settings: object) -> RoadDataset:
    return open_dataset(CsvData.model_validate({"kind": "csv", "path": path, **settings}))


def road_rows(folder: Path, per_class: int, extra: str = "") -> list[str]:
    names = [f"pictures/{label}{i}.jpg" for label in ("dry", "wet", "icy") for i in range(per_class)]
    touch(folder, *names)
    return [f"{name},{name.split('/')[1].rstrip('0123456789.jpg')}{extra}" for name in names]


def test_rows_with_splits_are_taken_as_they_are(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "b.png", "c d.jpg", "e.jpg", "f.jpg")
    rows = ["file,label,split", "a.jpg,dry,train", "b.png,wet,train", "'c d.jpg',icy,train".replace("'", '"')]
    rows += ["", "e.jpg,dry,validation", "f.jpg,icy,test"]
    dataset = open_table(write_table(tmp_path, "\n".join(rows)))
    assert {name: dataset.splits[name].keys for name in SPLITS} == {
        "train": ("a.jpg", "b.png", "c d.jpg"),
        "validation": ("e.jpg",),
        "test": ("f.jpg",),
    }
    assert dataset.splits["train"].labels_N.tolist() == [0, 1, 2]


def test_without_splits_every_class_keeps_its_share(tmp_path: Path) -> None:
    path = write_table(tmp_path, "\n".join(["file,label", *road_rows(tmp_path, 20)]))
    dataset = open_table(path, seed=3)
    assert {name: np.bincount(dataset.splits[name].labels_N).tolist() for name in SPLITS} == {
        "train": [12] * 3,
        "validation": [4] * 3,
        "test": [4] * 3,
    }


def test_groups_stay_whole_in_every_fold(tmp_path: Path) -> None:
    rows = [f"{row},drive{number % 9}" for number, row in enumerate(road_rows(tmp_path, 30))]
    group_of = {row.split(",")[0]: row.split(",")[2] for row in rows}
    path = write_table(tmp_path, "\n".join(["file,label,group", *rows]))
    for fold in range(3):
        dataset = open_table(path, folds=3, fold=fold)
        groups = [{group_of[key] for key in dataset.splits[name].keys} for name in SPLITS]
        assert sum(map(len, groups)) == len(set.union(*groups)) == 9


def test_pictures_may_lie_elsewhere_and_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    rows = road_rows(tmp_path / "disk", 5)
    path = write_table(tmp_path / "tables", "\ufeff" + "\r\n".join(["file,label", *rows]))
    assert len(open_table(path, root="../disk").splits["train"]) == 9


def test_finer_labels_become_states_and_frictions(tmp_path: Path) -> None:
    classes = ("dry-asphalt-smooth", "wet-mud", "ice")
    names = [f"{label}-{i}.jpg" for label in classes for i in range(5)]
    touch(tmp_path, *names)
    table = "\n".join(["file,label", *(f"{name},{name[:-6]}" for name in names)])
    path = write_table(tmp_path, table)
    assert open_table(path, classes=classes).classes.names == classes
    states = open_table(path, classes=classes, labels="state3")
    assert states.classes.names == ("dry", "wet", "icy")
    assert np.bincount(states.splits["train"].labels_N).tolist() == [3, 3, 3]
    frictions = open_table(path, classes=classes, labels="friction6")
    assert len(frictions.classes) == 6
    assert set(frictions.splits["train"].labels_N.tolist()) == {0, 1, 5}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("here.jpg,icey", ["line 2", "no class 'icey'", "did you mean 'icy'?"]),
        ("gone.jpg,icy", ["line 2", "the file is not there"]),
        ("../here.jpg,icy", ["below the pictures' folder"]),
        ("/etc/x.jpg,icy", ["below the pictures' folder"]),
        ("here.txt,icy", ["not a picture's name"]),
        ("here.jpg", ["1 fewer cells"]),
        ("here.jpg,icy,dry", ["1 more cells"]),
        ("here.jpg,icy\nhere.jpg,dry", ["line 3", "listed twice, with different labels"]),
        (",icy", ["(no file)", "plain path"]),
    ],
)
def test_a_row_that_cannot_be_a_sample_is_named(tmp_path: Path, row: str, words: list[str]) -> None:
    touch(tmp_path, "here.jpg")
    with pytest.raises(DataError) as error:
        open_table(write_table(tmp_path, f"file,label\n{row}\n"))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"a.jpg,dry\n", "does not name its columns"),
        (b"file,lable\n", "did you mean 'label'?"),
        (b"file,label,file\n", "does not name its columns"),
        (b"file,label\n", "names no pictures"),
        (b"file,label\n\xff\xfe.jpg,dry\n", "UTF-8"),
        (b'file,label\n"a.jpg,dry\n', "not CSV"),
        (b"file,label,split\nhere.jpg,dry,train\n", "a split has no pictures"),
        (b"file,label,split\nhere.jpg,dry,trian\n", "no split 'trian'"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    touch(tmp_path, "here.jpg")
    (tmp_path / "road.csv").write_bytes(content)
    with pytest.raises(DataError) as error:
        open_table(tmp_path / "road.csv")
    assert words in str(error.value)


def test_a_missing_table_and_a_missing_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the table cannot be read"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="folder of the table's pictures"):
        open_table(tmp_path / "none.csv", root="nowhere")


def test_a_class_without_training_pictures_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "b.jpg", "c.jpg", "d.jpg")
    rows = "file,label,split\na.jpg,dry,train\nb.jpg,icy,train\nc.jpg,wet,test\nd.jpg,dry,validation\n"
    with pytest.raises(DataError, match=r"(?s)no training pictures.*wet"):
        open_table(write_table(tmp_path, rows))


def test_a_group_in_two_splits_is_refused_row_by_row(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{name}.jpg" for name in "abcd"))
    rows = ["file,label,split,group", "a.jpg,dry,train,monday", "b.jpg,wet,train,monday"]
    rows += ["c.jpg,icy,test,monday", "d.jpg,icy,train,tuesday"]
    with pytest.raises(
        DataError, match=r"(?s)1 of 4 rows.*c\.jpg: line 4: the group 'monday' is in .*'train'"
    ):
        open_table(write_table(tmp_path, "\n".join(rows)))


def test_a_table_that_names_its_splits_has_no_folds(tmp_path: Path) -> None:
    rows = [row for split in SPLITS for row in road_rows(tmp_path, 3, f",{split}")]
    path = write_table(tmp_path, "\n".join(["file,label,split", *dict.fromkeys(rows[:9])]))
    with pytest.raises(DataError, match=r"(?s)has no folds.*data\.folds = 3"):
        open_table(path, folds=3)
