"""Rendered scenes: reproducible, true to scale, and not to be told apart by their mean colour."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_road.conditions import STATES
from edge_road.errors import DataError
from edge_road.synthetic.camera import View
from edge_road.synthetic.cover import Cover
from edge_road.synthetic.scenes import draw, random_style, render_scene

SMALL = (96, 128)


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("state", STATES)
def test_the_same_seed_gives_the_same_pixels_and_another_does_not(state: str) -> None:
    first, again, other = (render_scene(state, rng(seed)) for seed in (7, 7, 8))
    assert first.shape == (192, 256, 3)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


@pytest.mark.parametrize("size", [(16, 16), (90, 320), (300, 100), (540, 960)])
def test_any_size_can_be_rendered(size: tuple[int, int]) -> None:
    for seed in range(3):
        assert render_scene("wet", rng(seed), *size).shape == (*size, 3)


@pytest.mark.parametrize("state", STATES)
def test_a_scene_rendered_twice_as_large_and_shrunk_is_the_same_scene(state: str) -> None:
    for seed in range(4):
        small = render_scene(state, rng(seed), *SMALL)
        large = render_scene(state, rng(seed), SMALL[0] * 2, SMALL[1] * 2)
        shrunk = cv2.resize(large, SMALL[::-1], interpolation=cv2.INTER_AREA)
        assert np.abs(shrunk.astype(float) - small).mean() < 8
        other = render_scene(state, rng(seed + 100), *SMALL)
        assert np.abs(other.astype(float) - small).mean() > 20


def test_a_picture_too_small_to_show_a_road_is_refused() -> None:
    with pytest.raises(DataError, match="too small"):
        render_scene("dry", rng(0), 15, 64)


def test_a_misspelt_state_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DataError, match="did you mean 'icy'"):
        render_scene("icey", rng(0))


def test_scenes_are_neither_black_nor_burnt_out() -> None:
    for state in STATES:
        pictures = np.stack([render_scene(state, rng(seed), *SMALL) for seed in range(30)])
        assert 60 < pictures.mean() < 180
        assert (pictures >= 254).mean() < 0.1
        assert pictures.reshape(30, -1).astype(float).std(axis=1).min() > 10


def ground_light(cover: Cover, seed: int) -> np.ndarray:
    style = random_style(rng(seed))
    view = View(style.camera, *SMALL)
    return draw(style, view, view.ground(), cover, travel_m=40.0)


def test_water_mirrors_what_stands_above_the_road() -> None:
    """The light that water adds, column by column, follows the brightness above the horizon."""
    correlations = []
    for seed in range(12):
        dry, wet = (ground_light(Cover(water=water, puddles=water), seed) for water in (0.0, 1.0))
        horizon = int(random_style(rng(seed)).camera.horizon * SMALL[0])
        road = slice(SMALL[1] // 4, 3 * SMALL[1] // 4)
        above = dry[horizon // 2 : horizon, road].mean(axis=(0, 2))
        below = wet[horizon + 3 : horizon + 25, road].mean(axis=(0, 2))
        correlations.append(np.corrcoef(above, below)[0, 1])
    assert np.median(correlations) > 0.4


def test_snow_hides_the_lane_marks_and_whitens_the_ground() -> None:
    for seed in range(6):
        bare, covered = ground_light(Cover(), seed), ground_light(Cover(snow=1.0, verge_snow=1.0), seed)
        lower = slice(SMALL[0] * 2 // 3, SMALL[0] * 5 // 6)
        assert covered[lower].mean() > bare[lower].mean() * 1.15


def mean_colours(split: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean colour of the whole picture and of its lower half, and the label, of balanced scenes."""
    labels = np.arange(count) % len(STATES)
    pictures = [render_scene(STATES[label], rng(split, i), *SMALL) for i, label in enumerate(labels)]
    whole = np.array([picture.reshape(-1, 3).mean(axis=0) for picture in pictures])
    lower = np.array([picture[SMALL[0] // 2 :].reshape(-1, 3).mean(axis=0) for picture in pictures])
    return whole, lower, labels


def logistic_accuracy(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray
) -> float:
    """Multinomial logistic regression by plain gradient descent."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    train, test = (np.c_[(x - mean) / deviation, np.ones(len(x))] for x in (train, test))
    weights, target = np.zeros((train.shape[1], len(STATES))), np.eye(len(STATES))[labels]
    for _ in range(4000):
        scores = np.exp(train @ weights)
        weights -= train.T @ (scores / scores.sum(axis=1, keepdims=True) - target) / len(train)
    return float(((test @ weights).argmax(axis=1) == test_labels).mean())


def test_a_linear_model_on_mean_colour_fails() -> None:
    train, test = mean_colours(1, 360), mean_colours(2, 300)
    whole = logistic_accuracy(train[0], train[2], test[0], test[2])
    lower = logistic_accuracy(train[1], train[2], test[1], test[2])
    assert whole < 0.75
    assert lower < 0.75
