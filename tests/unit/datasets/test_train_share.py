"""Fewer training pictures: drawn by class and seed, nested, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from edge_road.config import check_settings, settings_digest
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.recipe_data import SyntheticData


def opened(share: float, seed: int = 0) -> RoadDataset:
    return open_dataset(SyntheticData(train=120, validation=12, test=9, seed=seed, train_share=share))


@pytest.mark.parametrize(("share", "of_each"), [(1.0, 40), (0.5, 20), (0.1, 4), (0.001, 1)])
def test_every_class_keeps_its_share_of_the_training_pictures(share: float, of_each: int) -> None:
    labels_N = opened(share).splits["train"].labels_N
    assert Counter(labels_N.tolist()) == {0: of_each, 1: of_each, 2: of_each}


def test_validation_and_test_stay_whole_and_the_digest_tells_the_difference() -> None:
    whole, half = opened(1.0), opened(0.5)
    for name in ("validation", "test"):
        assert half.splits[name].keys == whole.splits[name].keys
    assert half.digest != whole.digest
    assert half.digest == opened(0.5).digest


def test_a_smaller_share_lies_within_a_larger_one() -> None:
    """So that a curve over shares shows the number of pictures, not the luck of the draw."""
    shares = [set(opened(share).splits["train"].keys) for share in (0.1, 0.3, 0.7, 1.0)]
    assert all(small < large for small, large in pairwise(shares))


def test_order_and_labels_are_those_of_the_whole() -> None:
    whole, part = opened(1.0).splits["train"], opened(0.4).splits["train"]
    label_of = dict(zip(whole.keys, whole.labels_N.tolist()))
    assert [label_of[key] for key in part.keys] == part.labels_N.tolist()
    assert list(part.keys) == [key for key in whole.keys if key in set(part.keys)]


def test_a_recipe_that_takes_all_pictures_keeps_the_digest_it_had_before_there_was_a_choice() -> None:
    recipe = Recipe(name="a")
    assert "train_share" not in recipe.model_dump()["data"]
    half = Recipe(name="a", data=SyntheticData(train_share=0.5))
    assert half.model_dump()["data"]["train_share"] == 0.5
    assert settings_digest(half) != settings_digest(recipe)


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="train_share"):
        check_settings(
            Recipe, {"name": "a", "data": {"kind": "synthetic", "train_share": share}}, where="here"
        )
