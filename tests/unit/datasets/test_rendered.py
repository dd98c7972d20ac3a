"""A key names one rendered scene for ever, and no split shares a scene with another."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.conditions import RSCD_CLASSES
from edge_road.datasets import open_dataset
from edge_road.errors import DataError
from edge_road.recipe_data import SyntheticData


def test_scenes_are_shared_out_evenly_over_the_classes() -> None:
    dataset = open_dataset(SyntheticData(train=8, validation=3, test=5))
    counts = {name: np.bincount(split.labels_N).tolist() for name, split in dataset.splits.items()}
    assert counts == {"train": [3, 3, 2], "validation": [1, 1, 1], "test": [2, 2, 1]}
    assert dataset.splits["test"].keys == (
        "test/dry/0",
        "test/dry/1",
        "test/wet/0",
        "test/wet/1",
        "test/icy/0",
    )


def test_a_key_gives_the_same_scene_every_time_and_no_two_keys_the_same() -> None:
    settings = SyntheticData(train=9, validation=9, test=9, height=32, width=48)
    first, second = open_dataset(settings), open_dataset(settings)
    keys = [key for split in first.splits.values() for key in split.keys]
    pictures = {first.read(key).tobytes() for key in keys}
    assert first.read(keys[0]).shape == (32, 48, 3)
    assert len(pictures) == len(keys) == 27
    assert all(np.array_equal(first.read(key), second.read(key)) for key in keys)


def test_another_seed_gives_other_scenes_and_another_digest() -> None:
    first, second = (open_dataset(SyntheticData(seed=seed, height=32, width=32)) for seed in (0, -1))
    assert not np.array_equal(first.read("test/wet/0"), second.read("test/wet/0"))
    assert first.digest != second.digest


def test_the_27_classes_need_a_patch_each() -> None:
    dataset = open_dataset(SyntheticData(labels="rscd", train=54, validation=27, test=27))
    assert dataset.classes.names == RSCD_CLASSES
    assert dataset.read("train/wet-asphalt-smooth/1").dtype == np.uint8
    with pytest.raises(DataError, match="fewer scenes than there are classes"):
        open_dataset(SyntheticData(labels="rscd", train=54, validation=26, test=27))
