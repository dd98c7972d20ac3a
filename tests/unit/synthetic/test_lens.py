"""What the camera makes of light."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edge_road.synthetic.lens import Lens, photograph

PLAIN = Lens(exposure=0.7, adaptation=0, balance=(1, 1, 1), contrast=1, vignette=0, blur=0, noise=0)


def light(level: float, height: int = 64, width: int = 96) -> np.ndarray:
    return np.full((height, width, 3), level, dtype=np.float32)


def picture(lens: Lens, level: float, seed: int = 0) -> np.ndarray:
    return photograph(lens, light(level), np.random.default_rng(seed))


def test_more_light_is_brighter_and_never_overflows() -> None:
    means = [picture(PLAIN, level).mean() for level in (0, 0.2, 0.5, 1, 4, 100)]
    assert means[0] == 0
    assert means[:5] == sorted(set(means[:5]))
    assert means[-1] >= 254


def test_full_adaptation_forgets_how_bright_the_scene_was() -> None:
    automatic = replace(PLAIN, adaptation=1.0)
    assert abs(picture(automatic, 0.1).mean() - picture(automatic, 0.9).mean()) <= 1


def test_sensor_noise_has_the_asked_strength_and_differs_between_frames() -> None:
    noisy = replace(PLAIN, noise=6.0)
    first, second = picture(noisy, 0.5, seed=1), picture(noisy, 0.5, seed=2)
    assert first.astype(float).std() == pytest.approx(6.0, rel=0.1)
    assert (first != second).any()
    assert (first == picture(noisy, 0.5, seed=1)).all()


def test_the_corners_are_darker_with_a_vignette() -> None:
    shaded = picture(replace(PLAIN, vignette=0.5), 0.5)
    assert shaded[0, 0, 0] < 0.75 * shaded[32, 48, 0]


def test_white_balance_moves_the_colour() -> None:
    warm = picture(replace(PLAIN, balance=(1.2, 1.0, 0.8)), 0.5).reshape(-1, 3).mean(axis=0)
    assert warm[0] > warm[1] > warm[2]


def test_pictures_larger_than_the_stored_noise_are_fine() -> None:
    large = photograph(replace(PLAIN, noise=4.0), light(0.5, 1080, 1200), np.random.default_rng(3))
    assert large.shape == (1080, 1200, 3)
    assert large.dtype == np.uint8
    assert large.astype(float).std() == pytest.approx(4.0, rel=0.1)
