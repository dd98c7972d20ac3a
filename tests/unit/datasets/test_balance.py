"""Rare classes count as much as common ones: by weight in the loss, or by how often they are shown."""

from __future__ import annotations

import numpy as np

from edge_road.datasets.balance import balanced_order, class_counts, class_weights

LABELS = np.repeat([0, 1, 2], [60, 30, 10]).astype(np.int64)


def test_weights_make_every_class_count_alike_and_leave_the_mean_at_one() -> None:
    weights_C = class_weights(LABELS, 3)
    totals_C = class_counts(LABELS, 3) * weights_C
    assert np.allclose(totals_C, totals_C[0])
    assert np.isclose(weights_C[LABELS].mean(), 1.0)


def test_a_class_that_never_appears_weighs_nothing() -> None:
    weights_C = class_weights(LABELS, 4)
    assert weights_C[3] == 0.0
    assert np.allclose(weights_C[:3], class_weights(LABELS, 3))


def test_an_epoch_shows_every_class_equally_often_and_batches_stay_balanced() -> None:
    order = balanced_order(LABELS, np.random.default_rng(0))
    assert len(order) == 100
    for start in range(0, 99, 9):
        assert class_counts(LABELS[order[start : start + 9]], 3).tolist() == [3, 3, 3]
    assert sorted(class_counts(LABELS[order], 3).tolist()) == [33, 33, 34]


def test_no_picture_repeats_before_all_of_its_class_were_shown() -> None:
    order = balanced_order(LABELS, np.random.default_rng(1))
    shown = class_counts(order, 100)
    assert shown[:60].max() == 1
    for label, size in ((1, 30), (2, 10)):
        of_class = order[LABELS[order] == label]
        assert set(of_class[:size]) == set(np.flatnonzero(label == LABELS))


def test_the_order_follows_the_generator_and_changes_from_epoch_to_epoch() -> None:
    first, again, other = (balanced_order(LABELS, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_a_missing_class_and_an_empty_set_are_no_trouble() -> None:
    labels = np.array([2, 2, 0], dtype=np.int64)
    assert sorted(labels[balanced_order(labels, np.random.default_rng(0))].tolist())[1] in (0, 2)
    assert len(balanced_order(labels[:0], np.random.default_rng(0))) == 0
