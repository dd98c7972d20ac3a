"""CIFAR-10, binary version: records of one label and 3 x 32 x 32 bytes; nothing is unpickled."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from edge_road.conditions import CIFAR10_CLASSES, ClassList
from edge_road.datasets.index import Labels, RoadDataset, Split
from edge_road.datasets.listing import check_folder
from edge_road.datasets.official import official_splits
from edge_road.errors import DataError
from edge_road.frames import Image, Images
from edge_road.recipe_data import Cifar10Data

SIDE = 32
RECORD_BYTES = 1 + 3 * SIDE * SIDE
TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE = "test_batch.bin"


def open_cifar10(settings: Cifar10Data, path: Path) -> RoadDataset:
    check_folder(path, "CIFAR-10's folder")
    batches = {name: read_batch(path / name) for name in (*TRAIN_FILES, TEST_FILE)}
    pictures = {name: images_NHWC for name, (images_NHWC, _) in batches.items()}
    train, test = (_split(names, batches) for names in (TRAIN_FILES, (TEST_FILE,)))
    splits = official_splits(train, test, CIFAR10_CLASSES, settings.validation, settings.seed, path)
    return RoadDataset(ClassList(CIFAR10_CLASSES), splits, partial(_picture, pictures))


def read_batch(path: Path) -> tuple[Images, Labels]:
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise DataError("a file of CIFAR-10 cannot be read", where=path, got=error.strerror) from None
    if not len(content) or len(content) % RECORD_BYTES:
        raise DataError(
            "a file of CIFAR-10 is cut",
            where=path,
            got=f"{len(content)} bytes",
            expected=f"a multiple of {RECORD_BYTES}",
            fix="unpack cifar-10-binary.tar.gz again",
        )
    records = content.reshape(-1, RECORD_BYTES)
    if records[:, 0].max() >= len(CIFAR10_CLASSES):
        raise DataError("not a file of CIFAR-10", where=path, got=f"the label {records[:, 0].max()}")
    images_NHWC = records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return images_NHWC, records[:, 0].astype(np.int64)


def _split(names: tuple[str, ...], batches: dict[str, tuple[Images, Labels]]) -> Split:
    keys = tuple(f"{name}/{number}" for name in names for number in range(len(batches[name][1])))
    return Split(keys, np.concatenate([batches[name][1] for name in names]))


def _picture(pictures: dict[str, Images], key: str) -> Image:
    name, _, number = key.partition("/")
    return np.ascontiguousarray(pictures[name][int(number)])
