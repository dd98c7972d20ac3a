"""Paired bootstrap: against a slow loop, and on cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.errors import DataError
from edge_road.evaluation.significance import Difference, paired_bootstrap


def slow_bootstrap(a, b, generator, draws):
    """Draw pictures with repetition, one draw at a time."""
    means = []
    for _ in range(draws):
        drawn = [int(generator.integers(len(a))) for _ in range(len(a))]
        means.append(sum(float(a[i]) - float(b[i]) for i in drawn) / len(a))
    return np.quantile(means, 0.025), np.quantile(means, 0.975)


@pytest.mark.parametrize("shares", [False, True], ids=["right or wrong", "shares of ten runs"])
def test_the_interval_is_that_of_a_slow_loop(shares):
    draw = np.random.default_rng(1)
    if shares:
        a, b = draw.binomial(10, 0.8, 80) / 10, draw.binomial(10, 0.7, 80) / 10
    else:
        a, b = draw.random(80) < 0.85, draw.random(80) < 0.7
    interval = paired_bootstrap(a, b, np.random.default_rng(2), draws=20_000)
    low, high = slow_bootstrap(a, b, np.random.default_rng(3), draws=2_000)
    assert interval.difference == pytest.approx(np.mean(a.astype(float)) - np.mean(b.astype(float)))
    width = high - low
    assert interval.low == pytest.approx(low, abs=0.06 * width)
    assert interval.high == pytest.approx(high, abs=0.06 * width)


def test_equal_answers_differ_by_nothing():
    right = np.arange(50) % 3 > 0
    assert paired_bootstrap(right, right, np.random.default_rng(0)) == Difference(
        difference=0.0, low=0.0, high=0.0
    )


def test_a_clear_gain_is_significant_and_a_tie_of_opposite_mistakes_is_not():
    wrong_first, wrong_last = np.arange(60) >= 6, np.arange(60) < 54
    assert paired_bootstrap(np.ones(60), wrong_first, np.random.default_rng(0)).significant
    assert paired_bootstrap(wrong_first, np.ones(60), np.random.default_rng(0)).significant
    tie = paired_bootstrap(wrong_first, wrong_last, np.random.default_rng(0))
    assert tie.difference == 0.0
    assert not tie.significant


def test_pairs_narrow_the_interval():
    """Both fail on the same hard pictures: only the two pictures that differ make it wide."""
    a = np.arange(100) >= 30
    b = np.arange(100) >= 32
    paired = paired_bootstrap(a, b, np.random.default_rng(0))
    shuffled = paired_bootstrap(a, np.random.default_rng(1).permutation(b), np.random.default_rng(0))
    assert paired.high - paired.low < 0.5 * (shuffled.high - shuffled.low)


def test_the_same_generator_gives_the_same_interval():
    draw = np.random.default_rng(5)
    a, b = draw.random(40) < 0.9, draw.random(40) < 0.8
    first, second = (paired_bootstrap(a, b, np.random.default_rng(9)) for _ in range(2))
    assert first == second


def test_coverage_is_near_its_level():
    """Over many small experiments the true difference of 0.1 lies inside about 95 times in 100."""
    draw = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        a, b = draw.random(120) < 0.8, draw.random(120) < 0.7
        interval = paired_bootstrap(a, b, draw, draws=1_000)
        inside += interval.low <= 0.1 <= interval.high
    assert 0.90 <= inside / 400 <= 0.98


@pytest.mark.parametrize(
    ("a", "b"),
    [(np.ones(3), np.ones(4)), (np.ones(0), np.ones(0)), (np.ones((2, 2)), np.ones((2, 2)))],
)
def test_answers_of_other_pictures_are_refused(a, b):
    with pytest.raises(DataError, match="same pictures"):
        paired_bootstrap(a, b, np.random.default_rng(0))


def test_an_answer_that_is_not_a_number_is_refused():
    with pytest.raises(DataError, match="right or wrong"):
        paired_bootstrap(np.array([1.0, np.nan]), np.ones(2), np.random.default_rng(0))
