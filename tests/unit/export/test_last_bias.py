"""The mean error of a reduced model, its noise, and its last bias."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from tiny_onnx import conv_bytes, conv_graph, noise_images

from edge_road.conditions import ROAD_CLASSES
from edge_road.export.half import to_float16
from edge_road.export.last_bias import FARTHEST, LEAN, correction, with_fitted_bias
from edge_road.export.sensitivity import logits_of

IMAGES_NHWC = noise_images(40)
OTHER = conv_bytes(seed=1)
"""another model in the place of a badly quantised one"""
ICY_C = np.array([False, False, True])


def random_logits(seed: int, spread: float) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, spread, (50, 3))


@pytest.mark.parametrize("content", [OTHER, to_float16(OTHER, {})], ids=["float32", "float16"])
def test_every_logit_moves_by_its_correction_and_nothing_else_changes(content: bytes) -> None:
    wanted_NC = logits_of(conv_bytes(), ROAD_CLASSES, IMAGES_NHWC)
    before_NC = logits_of(content, ROAD_CLASSES, IMAGES_NHWC)
    fitted = with_fitted_bias(conv_bytes(), content, ROAD_CLASSES, IMAGES_NHWC)
    moved_NC = logits_of(fitted, ROAD_CLASSES, IMAGES_NHWC) - before_NC
    scale = float(np.abs(wanted_NC).max())
    expected_C = correction(wanted_NC, before_NC, ICY_C)
    assert np.abs(expected_C).max() > 0.01 * scale
    np.testing.assert_allclose(moved_NC, np.broadcast_to(expected_C, moved_NC.shape), atol=0.002 * scale)


def test_the_mean_error_is_gone_and_ice_gets_that_of_the_fence_and_a_share_of_the_noise() -> None:
    wanted_NC = random_logits(0, 2.0)
    got_NC = wanted_NC + random_logits(1, 0.2) + np.array([0.3, -0.2, 0.1])
    mean_C = (wanted_NC - got_NC).mean(axis=0)
    mean, deviation = slow_error(wanted_NC, got_NC + mean_C)
    added_C = correction(wanted_NC, got_NC, ICY_C) - mean_C
    np.testing.assert_allclose(added_C, [0, 0, mean + LEAN * deviation], atol=1e-12)
    assert abs(mean) > 0.01
    assert 0.1 < deviation < 0.4


def slow_error(wanted_NC: np.ndarray, got_NC: np.ndarray) -> tuple[float, float]:
    def odds(z: np.ndarray) -> float:
        return float(z[2]) - log(exp(z[0]) + exp(z[1]))

    errors = [odds(wanted) - odds(got) for wanted, got in zip(wanted_NC, got_NC)]
    chances = [1 / (1 + exp(-odds(wanted))) for wanted in wanted_NC]
    doubts = [p * (1 - p) for p in chances]
    mean = sum(d * e for d, e in zip(doubts, errors)) / sum(doubts)
    return mean, sqrt(sum(d * (e - mean) ** 2 for d, e in zip(doubts, errors)) / sum(doubts))


def test_a_model_that_is_all_noise_leans_no_farther_than_allowed() -> None:
    wanted_NC, got_NC = random_logits(0, 2.0), random_logits(1, 2.0)
    added_C = correction(wanted_NC, got_NC, ICY_C) - (wanted_NC - got_NC).mean(axis=0)
    np.testing.assert_allclose(added_C, [0, 0, FARTHEST], atol=1e-12)


def test_a_model_without_noise_does_not_lean() -> None:
    wanted_NC = random_logits(0, 2.0)
    np.testing.assert_allclose(correction(wanted_NC, wanted_NC - 0.25, ICY_C), 0.25)


def test_pictures_far_from_the_fence_do_not_count() -> None:
    wanted_NC = np.array([[0.0, 0.0, 0.7], [0.0, 0.0, 0.7], [60.0, 0.0, 0.0], [0.0, 0.0, 900.0]])
    error_NC = np.array([[0, 0, 0.1], [0, 0, -0.1], [0, 0, 9.0], [0, 0, -9.0]])  # 0 in the mean
    assert correction(wanted_NC, wanted_NC - error_NC, ICY_C)[2] == pytest.approx(LEAN * 0.1, rel=1e-3)


@pytest.mark.parametrize("icy_C", [np.zeros(3, bool), np.ones(3, bool)], ids=["no ice", "ice alone"])
def test_classes_without_ice_or_with_nothing_else_have_no_side_to_lean_to(icy_C: np.ndarray) -> None:
    wanted_NC, got_NC = random_logits(0, 2.0), random_logits(1, 2.0)
    np.testing.assert_allclose(correction(wanted_NC, got_NC, icy_C), (wanted_NC - got_NC).mean(axis=0))


def test_a_model_without_a_last_bias_stays_as_it_is() -> None:
    model = conv_graph(seed=1)
    del model.graph.node[11].input[2]
    content = model.SerializeToString()
    assert with_fitted_bias(conv_bytes(), content, ROAD_CLASSES, IMAGES_NHWC) == content
