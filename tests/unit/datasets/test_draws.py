"""Groups stay whole, parts come near to their shares, and the seed decides."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.datasets.draws import assign_groups, grouped_parts
from edge_road.errors import DataError
from edge_road.recipe_data import DrawnSplits


def drives(groups: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Drives of very different length, most of them mainly of one class."""
    generator = np.random.default_rng(0)
    sizes = generator.integers(5, 120, groups)
    groups_N = np.repeat(np.arange(groups), sizes)
    main_G = generator.integers(3, size=groups)
    labels_N = np.where(generator.random(len(groups_N)) < 0.8, main_G[groups_N], 0)
    return groups_N.astype(np.int64), labels_N.astype(np.int64)


def crossing(groups_N: np.ndarray, parts_N: np.ndarray) -> list[int]:
    return [group for group in np.unique(groups_N) if len(set(parts_N[groups_N == group])) > 1]


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_torn_apart_and_shares_are_kept(seed: int) -> None:
    groups_N, labels_N = drives()
    parts_N = grouped_parts(groups_N, labels_N, DrawnSplits(seed=seed), None)
    assert crossing(groups_N, parts_N) == []
    for label in range(3):
        shares = np.bincount(parts_N[labels_N == label], minlength=3) / (labels_N == label).sum()
        assert np.abs(shares - [0.6, 0.2, 0.2]).max() < 0.1


def test_grouped_folds_test_every_picture_once() -> None:
    groups_N, labels_N = drives()
    tested = np.zeros(len(groups_N), dtype=int)
    for fold in range(5):
        parts_N = grouped_parts(groups_N, labels_N, DrawnSplits(folds=5, fold=fold), None)
        assert crossing(groups_N, parts_N) == []
        assert set(parts_N) == {0, 1, 2}
        tested += parts_N == 2
    assert (tested == 1).all()


def test_the_same_seed_gives_the_same_groups() -> None:
    groups_N, labels_N = drives()
    first, again, other = (grouped_parts(groups_N, labels_N, DrawnSplits(seed=s), None) for s in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_no_part_is_empty_even_when_one_group_holds_nearly_everything() -> None:
    counts_GC = np.array([[1000], [1], [1]])
    parts_G = assign_groups(counts_GC, [0.6, 0.2, 0.2], np.random.default_rng(0))
    assert sorted(parts_G) == [0, 1, 2]
    assert parts_G[0] == 0


def test_fewer_groups_than_parts_are_refused() -> None:
    with pytest.raises(DataError, match="too few groups"):
        assign_groups(np.ones((2, 3), np.int64), [0.6, 0.2, 0.2], np.random.default_rng(0))


@pytest.mark.parametrize("folds", [0, 5])
def test_any_whole_number_is_a_seed_of_the_draw(folds: int) -> None:
    groups_N, labels_N = drives()
    draws = [
        grouped_parts(groups_N, labels_N, DrawnSplits(seed=seed, folds=folds), None)
        for seed in (-1, -2, 10**30)
    ]
    assert not any(np.array_equal(draws[0], other) for other in draws[1:])
