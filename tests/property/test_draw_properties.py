"""Whatever the classes, seed and folds: every picture in one split of a run, tested once over the folds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edge_road.conditions import STATES, ClassList
from edge_road.datasets.draws import stratified_splits
from edge_road.datasets.index import SPLITS
from edge_road.recipe_data import DrawnSplits


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(12, 60), min_size=3, max_size=3),
    seed=st.integers(0, 2**31),
    folds=st.integers(2, 6),
    validation=st.floats(0.05, 0.35),
)
def test_folds_divide_every_class(counts: list[int], seed: int, folds: int, validation: float) -> None:
    keys = [[f"{name}/{i}" for i in range(count)] for name, count in zip(STATES, counts)]
    tested: list[str] = []
    for fold in range(folds):
        draw = DrawnSplits(seed=seed, folds=folds, fold=fold, validation=validation)
        splits = stratified_splits(keys, ClassList(STATES), draw, None)
        drawn = [key for name in SPLITS for key in splits[name].keys]
        assert sorted(drawn) == sorted(key for part in keys for key in part)
        tested += splits["test"].keys
        for label, count in enumerate(counts):
            tests = (splits["test"].labels_N == label).sum()
            assert count // folds <= tests <= -(-count // folds)
            chosen = (splits["validation"].labels_N == label).sum()
            assert chosen == max(1, round(count * validation))
    assert sorted(tested) == sorted(key for part in keys for key in part)
