"""A pixel and the point of the road that it sees belong together."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.synthetic.camera import FARTHEST_M, Camera, View, strip

CAMERA = Camera(height_m=1.4, horizon=0.4, focal=0.8, across_m=1.7, yaw=0.02, roll=0.01)


@pytest.mark.parametrize("bend_per_m", [0.0, 0.003])
def test_ground_and_pixels_are_inverse_to_each_other(bend_per_m: float) -> None:
    view = View(CAMERA, 192, 256, bend_per_m)
    ground = view.ground()
    rows, columns = np.array([60, 100, 191, 120]) + 0, np.array([10, 128, 255, 40])
    rows = np.maximum(rows, ground.top + 20)
    across, ahead = (field[rows - ground.top, columns] for field in (ground.across_m, ground.ahead_m))
    pixels = view.pixels(np.stack([across, np.zeros(4), ahead], axis=1))
    np.testing.assert_allclose(pixels, np.stack([columns + 0.5, rows + 0.5], axis=1), atol=0.05)


def test_a_point_at_camera_height_lies_on_the_horizon_at_any_distance() -> None:
    view = View(Camera(height_m=1.4, horizon=0.4, focal=0.8), 200, 300)
    pixels = view.pixels([(0, 1.4, 5), (0, 1.4, 50), (0, 1.4, 300)])
    np.testing.assert_allclose(pixels[:, 1], 80)


def test_the_ground_covers_what_lies_below_the_horizon() -> None:
    ground = View(Camera(height_m=1.4, horizon=0.5, focal=0.8), 100, 100).ground()
    coverage_rows = ground.coverage[:, 0]
    assert coverage_rows[0] == 0
    assert coverage_rows[50 - ground.top + 1 :].min() == 1
    assert ground.ahead_m.max() <= FARTHEST_M * 1.0001


def test_a_larger_picture_sees_the_same_ground() -> None:
    small, large = (View(CAMERA, 96 * k, 128 * k).ground() for k in (1, 2))
    bottom = large.ahead_m[-2:, 100:102].mean()
    assert small.ahead_m[-1, 50] == pytest.approx(bottom, rel=0.01)
    assert small.pixel_across_m[-1, 50] == pytest.approx(
        2 * large.pixel_across_m[-2:, 100:102].mean(), rel=0.01
    )


def test_a_camera_that_looks_down_sees_ground_everywhere() -> None:
    ground = View(Camera(height_m=1.4, horizon=-0.5, focal=3.0), 60, 40).ground()
    assert ground.top == 0
    assert ground.coverage.min() == 1


def test_a_strip_keeps_its_area_however_coarse_the_pixels_are() -> None:
    for pixel_m in (0.01, 0.1, 0.5):
        across = np.arange(-5, 5, pixel_m, dtype=np.float32)[None, :]
        covered = strip(across, -0.21, 0.32, np.full_like(across, pixel_m)).sum() * pixel_m
        assert covered == pytest.approx(0.53, rel=0.15)
