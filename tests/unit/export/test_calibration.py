"""Which images calibrate, and how far activations reach."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper
from tiny_onnx import SIZE, conv_bytes, conv_graph, noise_images

from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.conditions import ROAD_CLASSES
from edge_road.errors import DataError
from edge_road.export.calibration import (
    PIXELS_OF_IMAGE,
    activation_reach,
    sample_activations,
    stratified_positions,
    with_perturbations,
)
from edge_road.export.quantize import int8_layers, quantize, quantized_tensors
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


def test_every_class_gets_the_same_share_of_each_perturbation_and_the_originals_stay() -> None:
    images_NHWC = np.full((24, *SIZE, 3), 128, np.uint8)
    labels_N = np.repeat([0, 1, 2], 8)
    settings = CalibrationSettings(perturbed_share=0.5, perturbations=("gaussian_60", "dark"))
    result_NHWC = with_perturbations(images_NHWC, labels_N, settings, seed=0)
    noisy_N = result_NHWC.std(axis=(1, 2, 3)) > 20
    dark_N = result_NHWC.mean(axis=(1, 2, 3)) < 100
    assert np.bincount(labels_N[noisy_N]).tolist() == [2, 2, 2]
    assert np.bincount(labels_N[dark_N]).tolist() == [2, 2, 2]
    assert not (noisy_N & dark_N).any()
    assert (images_NHWC == 128).all()


def test_with_many_small_classes_no_perturbation_is_left_out() -> None:
    """27 classes have five or four of 128 images: fewer than there are perturbations."""
    labels_N = np.sort(np.arange(128) % 27)
    settings = CalibrationSettings(perturbations=tuple(f"dark:{10 * step}" for step in range(1, 9)))
    images_NHWC = np.full((128, *SIZE, 3), 200, np.uint8)
    shades_N = with_perturbations(images_NHWC, labels_N, settings, seed=0)[:, 0, 0, 0]
    assert np.unique(shades_N, return_counts=True)[1].tolist() == [8] * 8 + [64]
    assert set(np.bincount(labels_N[shades_N < 200]).tolist()) == {2, 3}


def test_without_images_there_is_nothing_to_calibrate() -> None:
    with pytest.raises(DataError, match="no training images"):
        with_perturbations(noise_images(0), np.zeros(0, np.int64), CalibrationSettings(), seed=0)


def test_one_class_alone_still_calibrates() -> None:
    images_NHWC = with_perturbations(noise_images(16), np.zeros(16, np.int64), CalibrationSettings(), seed=0)
    assert (images_NHWC != noise_images(16)).any(axis=(1, 2, 3)).sum() == 8


def test_a_perturbation_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'gausian_40'"):
        CalibrationSettings(perturbations=("gausian_40",))


def test_reach_of_real_activations_is_their_largest_value_at_100_percent() -> None:
    images_NHWC = noise_images(4)
    settings = CalibrationSettings(method="percentile", percentile=100.0)
    reach = activation_reach(sample_activations(conv_bytes(), ["unit", "a"], images_NHWC), settings)
    assert reach["unit"] == pytest.approx(images_NHWC.max() / 255, rel=1e-5)
    assert reach["a"] > 0


def test_a_sample_holds_pixels_of_every_image_with_their_channels() -> None:
    found = sample_activations(conv_bytes(), ["a", "g"], noise_images(5))
    assert found["a"].samples_SC.shape == (5 * PIXELS_OF_IMAGE, 6)
    assert found["a"].of_pixels
    assert found["g"].samples_SC.shape == (5, 6)
    assert not found["g"].of_pixels


def test_a_model_whose_values_overflow_is_refused() -> None:
    model = conv_graph()
    model.graph.initializer[2].CopyFrom(
        numpy_helper.from_array(np.full((6, 3, 3, 3), 3e38, np.float32), "stem")
    )
    with pytest.raises(DataError, match="undefined"):
        sample_activations(model.SerializeToString(), ["a"], noise_images(2))


def test_a_graph_of_a_fixed_batch_gives_the_same_samples() -> None:
    fixed, any_batch = (sample_activations(conv_bytes(n), ["a"], noise_images(3))["a"] for n in (4, "N"))
    np.testing.assert_allclose(fixed.samples_SC, any_batch.samples_SC, rtol=1e-6)
    assert fixed.largest == pytest.approx(any_batch.largest)


def test_an_int8_graph_is_sampled_as_it_is_judged() -> None:
    """Fused INT8 kernels would give other values."""
    images_NHWC, tensors = noise_images(16), quantized_tensors(conv_bytes())
    layers = int8_layers(
        conv_bytes(), sample_activations(conv_bytes(), tensors, images_NHWC), CalibrationSettings()
    )
    int8_bytes = quantize(conv_bytes(), layers, layers)
    said = OnnxPredictor(int8_bytes, ROAD_CLASSES, SIZE, name="int8").predict(images_NHWC)
    sampled = sample_activations(int8_bytes, ["features"], images_NHWC)["features"]
    np.testing.assert_allclose(sampled.samples_SC, said.features_ND, atol=1e-6)
