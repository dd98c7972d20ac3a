"""What a handful of images can tell, and what it cannot."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from edge_road.export.paired import Loss, paired_loss


def loss(worse: int, better: int, images: int) -> Loss:
    """`worse` images lost, `better` ones gained, all others right in both."""
    before_RN, after_RN = np.ones((2, 1, images), bool)
    after_RN[0, :worse] = False
    before_RN[0, worse : worse + better] = False
    return paired_loss(before_RN, after_RN)


def mcnemar(worse: int, better: int) -> float:
    """Exact and one-sided: at least `worse` heads of a fair coin."""
    flips = worse + better
    return sum(comb(flips, heads) for heads in range(worse, flips + 1)) / 2**flips


@pytest.mark.parametrize(("worse", "better"), [(0, 0), (1, 0), (3, 0), (4, 1), (5, 0), (2, 6)])
def test_the_chance_of_few_flips_is_the_exact_mcnemar_test(worse: int, better: int) -> None:
    found = loss(worse, better, 260)
    assert found.value == pytest.approx((worse - better) / 260, abs=1e-6)
    assert found.chance == pytest.approx(mcnemar(worse, better), abs=1e-6)


def test_the_chance_of_many_flips_is_close_to_the_exact_one() -> None:
    assert loss(14, 6, 1000).chance == pytest.approx(mcnemar(14, 6), abs=0.02)


def test_three_lost_images_may_be_chance_and_five_are_not() -> None:
    assert loss(3, 0, 260).chance == 0.125
    assert loss(5, 0, 260).chance < 0.05


def test_the_interval_holds_the_value_and_narrows_with_images() -> None:
    few, many = loss(5, 2, 260), loss(50, 20, 2600)
    assert few.low < few.value < few.high
    assert many.high - many.low < 0.5 * (few.high - few.low)
    # Normal approximation: sd of a difference is sqrt(7 / 260) about, divided by sqrt(260).
    assert few.high - few.low == pytest.approx(2 * 1.96 * np.sqrt(7) / 260, rel=0.1)


def test_conditions_of_one_image_count_as_one_image() -> None:
    """Nine perturbations of one image that all flip are one surprise, not nine."""
    before_RN = np.ones((9, 100), bool)
    after_RN = before_RN.copy()
    after_RN[:, 0] = False
    found = paired_loss(before_RN, after_RN)
    assert found.value == pytest.approx(0.01)
    assert found.chance == 0.5


def test_the_same_answers_give_the_same_figures() -> None:
    assert loss(14, 6, 1000) == loss(14, 6, 1000)
    assert loss(0, 0, 10).low == loss(0, 0, 10).high == 0.0
