"""CIFAR-10 and SVHN in their original formats, written small by the tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from original_formats import make_cifar, make_svhn

from edge_road.conditions import CIFAR10_CLASSES, SVHN_CLASSES, UNKNOWN, ClassList
from edge_road.datasets import RoadDataset, load_prepared, open_dataset
from edge_road.datasets.guess import guess_data
from edge_road.datasets.index import SPLITS
from edge_road.errors import DataError
from edge_road.preprocess import Preprocessing
from edge_road.recipe_data import Cifar10Data, SvhnData


def open_cifar(folder: Path, **settings: object) -> RoadDataset:
    return open_dataset(Cifar10Data.model_validate({"kind": "cifar10", "path": folder, **settings}))


def open_svhn(folder: Path, **settings: object) -> RoadDataset:
    return open_dataset(SvhnData.model_validate({"kind": "svhn", "path": folder, **settings}))


def test_cifar_pictures_and_labels_come_back_as_written(tmp_path: Path) -> None:
    written = make_cifar(tmp_path)
    dataset = open_cifar(tmp_path)
    assert dataset.classes.names == CIFAR10_CLASSES
    assert {name: len(dataset.splits[name]) for name in SPLITS} == {
        "train": 180,
        "validation": 20,
        "test": 40,
    }
    for split in dataset.splits.values():
        for key, label in zip(split.keys, split.labels_N):
            name, number = key.split("/")
            assert np.array_equal(dataset.read(key), written[name][int(number)])
            assert label == int(number) % 10
    assert {key.split("/")[0] for key in dataset.splits["test"].keys} == {"test_batch.bin"}


def test_svhn_pictures_and_digits_come_back_as_written(tmp_path: Path) -> None:
    written = make_svhn(tmp_path)
    dataset = open_svhn(tmp_path)
    assert dataset.classes.names == SVHN_CLASSES
    assert {name: len(dataset.splits[name]) for name in SPLITS} == {"train": 50, "validation": 10, "test": 20}
    for split in dataset.splits.values():
        for key, label in zip(split.keys, split.labels_N):
            name, number = key.split("/")
            assert np.array_equal(dataset.read(key), written[name][..., int(number)])
            assert label == (int(number) + 1) % 10  # 10 stands for 0


def test_validation_is_drawn_from_training_by_the_seed_in_every_class(tmp_path: Path) -> None:
    make_cifar(tmp_path)
    first, again, other = (open_cifar(tmp_path, seed=seed, validation=0.2) for seed in (0, 0, 1))
    assert first.digest == again.digest != other.digest
    assert np.bincount(first.splits["validation"].labels_N).tolist() == [4] * 10
    assert first.splits["test"].keys == other.splits["test"].keys


def test_pictures_are_prepared_like_any_others(tmp_path: Path) -> None:
    make_cifar(tmp_path, per_batch=20)
    images_NHWC, labels_N = load_prepared(open_cifar(tmp_path), "test", Preprocessing(height=32, width=32))
    assert images_NHWC.shape == (20, 32, 32, 3)
    assert len(labels_N) == 20


def test_the_kind_is_guessed_from_the_files(tmp_path: Path) -> None:
    make_cifar(tmp_path, per_batch=20)
    assert guess_data(tmp_path).kind == "cifar10"
    (tmp_path / "svhn").mkdir()
    make_svhn(tmp_path / "svhn")
    assert guess_data(tmp_path / "svhn").kind == "svhn"


@pytest.mark.parametrize("length", [0, 1, 3072, 3073 * 5 - 1])
def test_a_cut_cifar_file_is_refused(tmp_path: Path, length: int) -> None:
    make_cifar(tmp_path)
    path = tmp_path / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError) as error:
        open_cifar(tmp_path)
    assert "data_batch_3.bin" in str(error.value)
    assert "is cut" in str(error.value)


def test_a_cifar_file_that_is_missing_or_foreign_is_named(tmp_path: Path) -> None:
    make_cifar(tmp_path)
    path = tmp_path / "data_batch_2.bin"
    path.write_bytes(b"\xff" * 3073)
    with pytest.raises(DataError, match="not a file of CIFAR-10"):
        open_cifar(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"(?s)cannot be read.*data_batch_2.bin"):
        open_cifar(tmp_path)


def test_svhn_files_that_are_cut_missing_or_foreign_are_refused(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    make_svhn(tmp_path)
    path = tmp_path / "train_32x32.mat"
    whole = path.read_bytes()
    for length in (0, 50, 200, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"(?s)not a whole file.*train_32x32.mat"):
            open_svhn(tmp_path)
    for variables in (
        {"Y": np.zeros(3)},
        {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones(3)},
        {"X": np.zeros((32, 32, 3, 3)), "y": np.ones(3)},
        {"X": np.zeros((32, 32, 3, 3), np.uint8), "y": np.full(3, 11)},
    ):
        scipy_io.savemat(path, variables)
        with pytest.raises(DataError, match="not a whole file"):
            open_svhn(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="is not there"):
        open_svhn(tmp_path)


def test_classes_that_are_no_roads_have_no_state_and_only_as_a_whole_list() -> None:
    assert set(ClassList(CIFAR10_CLASSES).states) == {UNKNOWN}
    assert ClassList(SVHN_CLASSES).state_probabilities(np.full((1, 10), 0.1)).tolist() == [[0.0, 0.0, 0.0]]
    with pytest.raises(DataError, match="no road state"):
        ClassList(("airplane", "dry"))
