"""Small splits live in memory, large ones on disk, and both show the same pictures."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.datasets import RoadDataset, Split
from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.preprocess import Preprocessing
from edge_road.training.pictures import PicturesInMemory, PicturesOnDisk, check_test_pictures, open_pictures

SMALL = Preprocessing(height=16, width=24)


def dataset(count: int, bad: frozenset[int] = frozenset()) -> RoadDataset:
    def read(key: str) -> Image:
        if int(key) in bad:
            raise DataError("the picture is refused", where=key, got="a JPEG that is cut")
        return np.random.default_rng(int(key)).integers(0, 256, (48, 60, 3), dtype=np.uint8)

    split = Split(tuple(map(str, range(count))), np.arange(count) % 3)
    return RoadDataset(ROAD_CLASSES, {"train": split}, read)


def test_a_split_that_fits_is_kept_in_memory_and_a_larger_one_is_not() -> None:
    needed_gb = 10 * 16 * 24 * 3 / 1e9
    fits = open_pictures(dataset(10), "train", SMALL, memory_gb=needed_gb, workers=1)
    large = open_pictures(dataset(10), "train", SMALL, memory_gb=needed_gb * 0.99, workers=1)
    assert isinstance(fits, PicturesInMemory)
    assert isinstance(large, PicturesOnDisk)
    np.testing.assert_array_equal(fits.labels_N, large.labels_N)
    for index in range(10):
        np.testing.assert_array_equal(fits.picture(index), large.picture(index))


def test_test_pictures_are_checked_where_decoding_them_is_quick() -> None:
    found = dataset(10, frozenset({3}))
    files = replace(found, splits={"test": found.splits["train"]}, content=lambda key: b"")
    needed_gb = 10 * 16 * 24 * 3 / 1e9
    with pytest.raises(DataError, match="1 of 10"):
        check_test_pictures(files, SMALL, memory_gb=needed_gb, workers=1)
    check_test_pictures(files, SMALL, memory_gb=needed_gb * 0.99, workers=1)
    rendered = replace(files, content=None)
    check_test_pictures(rendered, SMALL, memory_gb=needed_gb, workers=1)


def test_a_bad_file_on_disk_is_skipped_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    pictures = PicturesOnDisk(dataset(200, frozenset({7})), "train", SMALL)
    with caplog.at_level(logging.WARNING):
        assert pictures.picture(7) is None
        assert pictures.picture(7) is None
    assert [record.getMessage() for record in caplog.records] == ["left out 7: a JPEG that is cut"]


def test_more_than_one_percent_of_bad_files_stops_the_training() -> None:
    pictures = PicturesOnDisk(dataset(200, frozenset({7, 8, 9})), "train", SMALL)
    assert (pictures.picture(7), pictures.picture(8)) == (None, None)
    with pytest.raises(DataError, match="3 of 200") as error:
        pictures.picture(9)
    assert "7, 8, 9" in str(error.value)
