"""What lies at a path decides how it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.datasets.guess import guess_classes, guess_data, guess_kind, settings_at
from edge_road.datasets.rscd import FOLDERS
from edge_road.errors import DataError
from edge_road.recipe_data import CsvData, FolderData, RscdData, SyntheticData


def make(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("folders", "classes"),
    [
        (("dry", "wet", "icy"), ("dry", "wet", "icy")),
        (("dry", "icey"), ("dry", "wet", "icy")),
        (("ice", "wet", "misc"), ("ice", "wet")),
        (("wet_asphalt_smooth", "dry_mud"), ("dry_mud", "wet_asphalt_smooth")),
        ((), ("dry", "wet", "icy")),
    ],
)
def test_classes_are_the_folders_that_are_named_like_one(
    tmp_path: Path, folders: tuple[str, ...], classes: tuple[str, ...]
) -> None:
    assert guess_classes(make(tmp_path, *folders)) == classes


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    assert guess_kind(make(tmp_path / "rscd", *FOLDERS.values())) == "rscd"
    assert guess_kind(make(tmp_path / "roads", "dry")) == "folder"
    (tmp_path / "table.csv").touch()
    assert guess_kind(tmp_path / "table.csv") == "csv"
    with pytest.raises(DataError, match="no data set"):
        guess_data(tmp_path / "nowhere")


def test_a_part_of_rscd_is_told_from_class_folders_in_train_and_test(tmp_path: Path) -> None:
    assert guess_kind(make(tmp_path / "part", "train/dry_mud", "vali_20k")) == "rscd"
    assert guess_kind(make(tmp_path / "split", "train/dry", "test/dry")) == "folder"
    assert guess_kind(make(tmp_path / "trains", "dry", "wet", "icy", "train")) == "folder"


def test_another_place_is_read_like_the_first_when_it_is_of_its_kind(tmp_path: Path) -> None:
    rscd = make(tmp_path / "rscd", *FOLDERS.values())
    roads = make(tmp_path / "roads", "dry")
    first = RscdData(kind="rscd", path=Path("elsewhere"), split="per_day", labels="state3")
    assert settings_at(rscd, first, ("dry", "wet", "icy")) == first.model_copy(update={"path": rscd})
    assert settings_at(roads, first, ("dry", "wet")) == FolderData(
        kind="folder", path=roads, classes=("dry", "wet")
    )
    assert settings_at(rscd, SyntheticData(), ("dry", "wet", "icy")) == RscdData(kind="rscd", path=rscd)
    (tmp_path / "table.csv").touch()
    assert settings_at(tmp_path / "table.csv", first, ("dry", "wet")) == CsvData(
        kind="csv", path=tmp_path / "table.csv", classes=("dry", "wet")
    )
