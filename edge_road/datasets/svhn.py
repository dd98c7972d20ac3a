"""SVHN, cropped digits: MATLAB files with X (32 x 32 x 3 x N) and y, in which 10 stands for the digit 0."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from edge_road.conditions import SVHN_CLASSES, ClassList
from edge_road.datasets.index import Labels, RoadDataset, Split
from edge_road.datasets.listing import check_folder
from edge_road.datasets.official import official_splits
from edge_road.errors import DataError
from edge_road.frames import Image, Images
from edge_road.recipe_data import SvhnData

SIDE = 32
FILES = {"train": "train_32x32.mat", "test": "test_32x32.mat"}


def open_svhn(settings: SvhnData, path: Path) -> RoadDataset:
    check_folder(path, "SVHN's folder")
    read = {name: read_digits(path / file) for name, file in FILES.items()}
    pictures = {name: images_HWCN for name, (images_HWCN, _) in read.items()}
    train, test = (_split(name, labels_N) for name, (_, labels_N) in read.items())
    splits = official_splits(train, test, SVHN_CLASSES, settings.validation, settings.seed, path)
    return RoadDataset(ClassList(SVHN_CLASSES), splits, partial(_picture, pictures))


def read_digits(path: Path) -> tuple[Images, Labels]:
    """Pictures as 32 x 32 x 3 x N, labels 0 to 9."""
    from scipy.io import loadmat  # type: ignore[import-untyped]

    if not path.is_file():
        raise DataError("a file of SVHN is not there", where=path)
    try:
        variables = loadmat(path, variable_names=["X", "y"])
    except Exception as error:  # a damaged file makes scipy raise almost anything
        raise _foreign(path, f"{type(error).__name__}: {error}") from None
    images_HWCN, labels = variables.get("X"), variables.get("y")
    if images_HWCN is None or labels is None:
        raise _foreign(path, "no variables X and y")
    labels_N = np.asarray(labels).reshape(-1).astype(np.int64)
    if images_HWCN.dtype != np.uint8 or images_HWCN.shape != (SIDE, SIDE, 3, len(labels_N)):
        raise _foreign(path, f"X of {images_HWCN.dtype} {images_HWCN.shape}, {len(labels_N)} labels")
    if len(labels_N) == 0 or labels_N.min() < 1 or labels_N.max() > len(SVHN_CLASSES):
        raise _foreign(path, "labels outside 1 to 10")
    return images_HWCN, labels_N % len(SVHN_CLASSES)


def _foreign(path: Path, got: str) -> DataError:
    return DataError(
        "not a whole file of SVHN's cropped digits",
        where=path,
        got=got,
        expected="uint8 X of 32 x 32 x 3 x N and y of 1 to 10",
        fix="download it again",
    )


def _split(name: str, labels_N: Labels) -> Split:
    return Split(tuple(f"{name}/{number}" for number in range(len(labels_N))), labels_N)


def _picture(pictures: dict[str, Images], key: str) -> Image:
    name, _, number = key.partition("/")
    return np.ascontiguousarray(pictures[name][..., int(number)])
