"""Four calibrators on values whose best reach is known."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.export.reach import LEAST_SCALE, SMALLEST_RANGE, half_scales, reach
from edge_road.export.target import CalibrationMethod


def reach_of(values: np.ndarray, method: CalibrationMethod, percentile: float = 99.99) -> float:
    return reach(values.astype(np.float32), float(np.abs(values).max()), method, percentile)


def outliers() -> np.ndarray:
    return np.concatenate([np.linspace(-1, 1, 99_990), np.full(10, 100.0)])


def test_a_percentile_leaves_out_the_outliers_and_min_max_does_not() -> None:
    assert reach_of(outliers(), "percentile", 99.9) == pytest.approx(1.0, abs=0.06)
    assert reach_of(outliers(), "percentile", 100.0) == reach_of(outliers(), "min-max") == 100.0


def test_the_least_squared_error_lies_between_clipping_and_coarse_steps() -> None:
    values = np.random.default_rng(0).laplace(size=200_000)

    def error(limit: float) -> float:
        step = limit / 127
        rounded = np.clip(np.rint(values / step), -127, 127) * step
        return float(np.mean((values - rounded) ** 2))

    best = min(error(limit) for limit in np.linspace(1, np.abs(values).max(), 200))
    assert error(reach_of(values, "mse")) <= 1.05 * best


def test_entropy_clips_a_long_thin_tail_and_keeps_an_even_spread() -> None:
    rng = np.random.default_rng(0)
    tail = np.concatenate([rng.normal(0, 1, 100_000), rng.uniform(0, 60, 30)])
    assert 2.0 < reach_of(tail, "entropy") < 20.0
    even = rng.uniform(-3, 3, 100_000)
    assert reach_of(even, "entropy") == pytest.approx(3.0, rel=0.05)


def test_the_zeros_of_a_relu_do_not_move_the_entropy_scale() -> None:
    values = np.abs(np.random.default_rng(0).normal(size=50_000))
    with_zeros = np.concatenate([values, np.zeros(50_000)])
    assert reach_of(with_zeros, "entropy") == pytest.approx(reach_of(values, "entropy"), rel=0.05)
    assert reach_of(with_zeros, "entropy") > 3.0


def test_the_entropy_of_values_near_zero_alone_is_no_error() -> None:
    assert 0.0 < reach(np.zeros(100, np.float32), 1.0, "entropy", 99.99) <= 1.0


@pytest.mark.parametrize("method", ["mse", "percentile", "min-max", "entropy"])
def test_values_that_are_always_zero_get_no_zero_scale(method: CalibrationMethod) -> None:
    assert reach_of(np.zeros(100), method) == SMALLEST_RANGE


def test_scales_are_float16_numbers_that_clip_nothing_new() -> None:
    scales = np.random.default_rng(0).lognormal(-6, 3, 1000)
    halves = half_scales(scales)
    np.testing.assert_array_equal(halves, halves.astype(np.float16).astype(np.float32))
    assert (halves >= np.maximum(scales, LEAST_SCALE)).all()
    assert (halves <= np.maximum(scales, LEAST_SCALE) * 1.001).all()
