"""Which pictures a model is asked about before it is judged."""

from __future__ import annotations

import numpy as np

from edge_road.datasets import Split
from edge_road.training.examine import draw, draw_evenly, spread_out


def split_of(*counts: int) -> Split:
    labels_N = np.repeat(np.arange(len(counts)), counts)
    return Split(tuple(f"{number}.jpg" for number in range(len(labels_N))), labels_N)


def test_a_rare_class_is_drawn_as_often_as_the_others_as_far_as_it_goes() -> None:
    split = split_of(5000, 3, 5000)
    counts = np.bincount(draw_evenly(split, 600, seed=0).labels_N, minlength=3)
    assert counts[1] == 3
    assert counts[[0, 2]].tolist() == [200, 200]
    assert np.bincount(draw(split, 600, seed=0).labels_N, minlength=3)[1] == 0, "left to chance it is missed"


def test_pictures_come_in_their_order_each_once_and_a_small_split_as_a_whole() -> None:
    drawn = draw_evenly(split_of(50, 4), 30, seed=1)
    numbers = [int(key.removesuffix(".jpg")) for key in drawn.keys]
    assert numbers == sorted(set(numbers))
    assert draw_evenly(split_of(3, 2), 5, seed=1).keys == split_of(3, 2).keys


def test_strange_pictures_are_made_of_every_class() -> None:
    """Pictures lie class by class; the first ones alone would be of the first classes."""
    images_NHWC = np.repeat(np.arange(3, dtype=np.uint8), [120, 40, 100]).reshape(-1, 1, 1, 1)
    assert np.bincount(spread_out(images_NHWC, 52).ravel()).tolist() == [24, 8, 20]
    assert len(spread_out(images_NHWC, 500)) == len(images_NHWC)
    assert len(spread_out(images_NHWC[:0], 500)) == 0
