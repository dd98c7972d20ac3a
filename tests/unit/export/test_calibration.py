"""Which images calibrate, and how far activations reach."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from tiny_onnx import SIZE, conv_bytes, conv_graph, noise_images

from edge_road.errors import DataError
from edge_road.export.calibration import (
    SMALLEST_RANGE,
    Histogram,
    activation_reach,
    stratified_positions,
    with_noise,
)
from edge_road.export.target import CalibrationSettings


def drawn(labels: list[int], count: int, seed: int = 0) -> list[int]:
    labels_N = np.array(labels)
    positions = stratified_positions(labels_N, count, np.random.default_rng(seed))
    return labels_N[positions].tolist()


def test_a_rare_class_is_drawn_as_often_as_it_can_be() -> None:
    labels = [0] * 90 + [1] * 8 + [2] * 2
    assert np.bincount(drawn(labels, 12)).tolist() == [5, 5, 2]


def test_fewer_images_than_wanted_are_all_taken() -> None:
    assert drawn([0, 1, 1], 10) == [0, 1, 1]


def test_a_seed_gives_one_draw() -> None:
    labels_N = np.arange(60) % 3
    first, again, other = (stratified_positions(labels_N, 9, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    assert len(set(first.tolist())) == 9


def test_a_quarter_of_the_images_gets_noise_and_the_originals_stay() -> None:
    images_NHWC = np.full((8, *SIZE, 3), 128, np.uint8)
    settings = CalibrationSettings(noisy_share=0.25, sigma=0.2)
    noisy_NHWC = with_noise(images_NHWC, settings, np.random.default_rng(0))
    changed_N = (noisy_NHWC != 128).any(axis=(1, 2, 3))
    assert changed_N.sum() == 2
    assert noisy_NHWC[changed_N].std() == pytest.approx(0.2 * 255, rel=0.1)
    assert (images_NHWC == 128).all()


def test_without_images_there_is_nothing_to_calibrate() -> None:
    with pytest.raises(DataError, match="no training images"):
        with_noise(noise_images(0), CalibrationSettings(), np.random.default_rng(0))


def histogram_of(values: np.ndarray) -> Histogram:
    histogram = Histogram(float(np.abs(values).max()))
    histogram.add(values.astype(np.float32))
    return histogram


def test_a_percentile_leaves_out_the_outliers() -> None:
    values = np.concatenate([np.linspace(-1, 1, 99_990), np.full(10, 100.0)])
    reach = histogram_of(values).reach(CalibrationSettings(percentile=99.9))
    assert reach == pytest.approx(1.0, abs=0.06)
    assert histogram_of(values).reach(CalibrationSettings(percentile=100.0)) == 100.0


def test_the_least_squared_error_lies_between_clipping_and_coarse_steps() -> None:
    values = np.random.default_rng(0).laplace(size=200_000)
    reach = histogram_of(values).reach(CalibrationSettings(method="mse"))

    def error(limit: float) -> float:
        step = limit / 127
        rounded = np.clip(np.rint(values / step), -127, 127) * step
        return float(np.mean((values - rounded) ** 2))

    assert error(reach) <= 1.05 * min(error(limit) for limit in np.linspace(1, np.abs(values).max(), 200))


def test_reach_of_real_activations_is_their_largest_value_at_100_percent() -> None:
    images_NHWC = noise_images(4)
    reach = activation_reach(conv_bytes(), ["unit", "a"], images_NHWC, CalibrationSettings(percentile=100.0))
    assert reach["unit"] == pytest.approx(images_NHWC.max() / 255, rel=1e-5)
    assert reach["a"] > 0


def test_an_activation_that_is_always_zero_gets_no_zero_scale() -> None:
    black = np.zeros((2, *SIZE, 3), np.uint8)
    reach = activation_reach(conv_bytes(), ["unit"], black, CalibrationSettings())
    assert reach["unit"] >= SMALLEST_RANGE / 2048
    assert histogram_of(np.array([1e-12])).reach(CalibrationSettings()) == SMALLEST_RANGE


def test_a_model_that_gives_nan_is_refused() -> None:
    model = conv_graph()
    model.graph.initializer[2].CopyFrom(
        numpy_helper.from_array(np.full((6, 3, 3, 3), np.nan, np.float32), "stem")
    )
    with pytest.raises(DataError, match="undefined"):
        activation_reach(model.SerializeToString(), ["a"], noise_images(2), CalibrationSettings())
