"""A split comes into memory at the model's size and in order; bad pictures are counted, not hidden."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from edge_road.conditions import ROAD_CLASSES
from edge_road.datasets import RoadDataset, Split, load_prepared
from edge_road.datasets.index import SPLITS
from edge_road.datasets.prepared import check_readable
from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.preprocess import Crop, Preprocessing

PREPROCESSING = Preprocessing(height=16, width=24, crop=Crop(top=0.5))


def numbered_dataset(count: int, bad: tuple[int, ...] = ()) -> RoadDataset:
    def read(key: str) -> Image:
        if int(key) in bad:
            raise DataError("the picture is refused", where=key, got="a JPEG that is cut")
        picture = np.zeros((64, 48, 3), np.uint8)
        picture[32:] = int(key) % 256
        return picture

    split = Split(tuple(str(i) for i in range(count)), np.arange(count) % 3)
    return RoadDataset(ROAD_CLASSES, {"train": split, "validation": split, "test": split}, read)


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_pictures_keep_their_order_whatever_the_number_of_workers(workers: int) -> None:
    images_NHWC, labels_N = load_prepared(numbered_dataset(100), "test", PREPROCESSING, workers)
    assert images_NHWC.shape == (100, 16, 24, 3)
    assert images_NHWC.dtype == np.uint8
    assert images_NHWC.reshape(100, -1).min(axis=1).tolist() == list(range(100))
    assert labels_N.tolist() == [i % 3 for i in range(100)]


def test_a_few_unreadable_pictures_are_left_out_and_listed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        images_NHWC, labels_N = load_prepared(numbered_dataset(200, bad=(3, 150)), "train", PREPROCESSING)
    assert len(images_NHWC) == len(labels_N) == 198
    assert 3 not in images_NHWC[:, 0, 0, 0]
    assert labels_N[3] == 4 % 3
    assert "2 of 200" in caplog.text
    assert "150: a JPEG that is cut" in caplog.text


def test_more_than_one_percent_unreadable_stops_with_the_list() -> None:
    with pytest.raises(DataError) as error:
        load_prepared(numbered_dataset(200, bad=(3, 4, 150)), "train", PREPROCESSING)
    for word in ("3 of 200", "4: a JPEG that is cut", "150: "):
        assert word in str(error.value)


def test_the_split_that_holds_the_bad_pictures_is_named() -> None:
    whole = numbered_dataset(30, bad=(25,))
    splits = {name: whole.splits["test"].take(np.arange(10) + 10 * i) for i, name in enumerate(SPLITS)}
    dataset = replace(whole, splits=splits)
    check_readable(dataset, splits["train"])
    with pytest.raises(DataError, match="1 of 10") as error:
        check_readable(dataset, splits["test"])
    assert error.value.details["where"] == "the test split"
    assert error.value.details["got"] == "25: a JPEG that is cut"


def test_what_cannot_fit_into_memory_is_refused_before_the_first_picture() -> None:
    split = Split(tuple("abc"), np.zeros(3, np.int64))
    huge = replace(numbered_dataset(3), splits={"train": replace(split, keys=("0",) * 1_000_000)})
    with pytest.raises(DataError, match="do not fit into memory"):
        load_prepared(huge, "train", Preprocessing(height=4096, width=4096))
