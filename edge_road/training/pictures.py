"""The pictures of a split at model size: in memory when they fit, else read one by one."""

from __future__ import annotations

import logging
from typing import Protocol

from edge_road.datasets.index import Labels, RoadDataset
from edge_road.datasets.prepared import LARGEST_BAD_SHARE, check_readable, prepare_split
from edge_road.errors import DataError
from edge_road.frames import Image, Images
from edge_road.preprocess import Preprocessing

_log = logging.getLogger(__name__)


class Pictures(Protocol):
    labels_N: Labels
    keys: tuple[str, ...]
    """their names, where they have any"""

    def picture(self, index: int) -> Image | None:
        """uint8 HxWx3 at model size; None when it cannot be read."""
        ...


def open_pictures(
    dataset: RoadDataset, split_name: str, preprocessing: Preprocessing, *, memory_gb: float, workers: int
) -> Pictures:
    if not _fits(dataset, split_name, preprocessing, memory_gb):
        return PicturesOnDisk(dataset, split_name, preprocessing)
    prepared = prepare_split(dataset, dataset.splits[split_name], preprocessing, workers)
    return PicturesInMemory(prepared.images_NHWC, prepared.labels_N, prepared.keys)


def check_test_pictures(
    dataset: RoadDataset, preprocessing: Preprocessing, *, memory_gb: float, workers: int
) -> None:
    """Now, because after the training nobody may remove a damaged one; a large set is not decoded twice."""
    is_files = dataset.content is not None
    if is_files and _fits(dataset, "test", preprocessing, memory_gb):
        check_readable(dataset, dataset.splits["test"], workers)


def _fits(dataset: RoadDataset, split_name: str, preprocessing: Preprocessing, memory_gb: float) -> bool:
    return len(dataset.splits[split_name]) * preprocessing.height * preprocessing.width * 3 <= memory_gb * 1e9


class PicturesInMemory:
    def __init__(self, images_NHWC: Images, labels_N: Labels, keys: tuple[str, ...] = ()) -> None:
        self.images_NHWC = images_NHWC
        self.labels_N = labels_N
        self.keys = keys

    def picture(self, index: int) -> Image:
        image: Image = self.images_NHWC[index]
        return image


class PicturesOnDisk:
    """Hours into a large data set a few bad files must not stop it: they are skipped, up to 1 %."""

    def __init__(self, dataset: RoadDataset, split_name: str, preprocessing: Preprocessing) -> None:
        self.split = dataset.splits[split_name]
        self.labels_N = self.split.labels_N
        self.keys = self.split.keys
        self._read = dataset.read
        self._preprocessing = preprocessing
        self._bad: set[str] = set()

    def picture(self, index: int) -> Image | None:
        try:
            return self._preprocessing.prepare(self._read(self.split.keys[index]))
        except DataError as error:
            self._skip(self.split.keys[index], error)
            return None

    def _skip(self, key: str, error: DataError) -> None:
        if key not in self._bad:
            self._bad.add(key)
            _log.warning("left out %s: %s", key, error.details.get("got", error.what))
        if len(self._bad) > LARGEST_BAD_SHARE * len(self.split):
            raise DataError(
                f"{len(self._bad)} of {len(self.split)} pictures cannot be used, at most "
                f"{LARGEST_BAD_SHARE:.0%} may be left out",
                got=", ".join(sorted(self._bad)[:20]),
                fix="repair or remove them",
            ) from error
