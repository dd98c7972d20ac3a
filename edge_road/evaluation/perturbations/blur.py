"""Blur: the four of the common corruptions (Hendrycks and Dietterich, 2019), and that of driving."""

from __future__ import annotations

import math

import cv2
import numpy as np

from edge_road.evaluation.perturbations.pixels import (
    Field,
    light,
    pixels,
    scale_of,
    smooth,
    zoomed,
)
from edge_road.frames import Image

_FINENESS = 8  # samples of a pixel's side, for the rim of a disc
_VANISHING_YX = (0.45, 0.5)


def defocus_blur(image: Image, rng: np.random.Generator, radius_px: float) -> Image:
    """A point becomes a disc."""
    return pixels(_filtered(light(image), _disc(radius_px * scale_of(image))))


def glass_blur(
    image: Image, rng: np.random.Generator, sigma_px: float, reach_px: float, rounds: int
) -> Image:
    """Frosted glass: soft, then every pixel is seen through a neighbour, then soft again."""
    scale = scale_of(image)
    field = smooth(light(image), sigma_px * scale)
    height, width = image.shape[:2]
    rows_HW, columns_HW = np.indices((height, width))
    for _ in range(rounds):
        # Rounded up or down by chance, so that a reach below one pixel is not lost.
        away_2HW = rng.uniform(-1.0, 1.0, (2, height, width)) * (reach_px * scale)
        down_HW, along_HW = np.floor(away_2HW + rng.random((2, height, width))).astype(np.int64)
        field = field[np.clip(rows_HW + down_HW, 0, height - 1), np.clip(columns_HW + along_HW, 0, width - 1)]
    return pixels(smooth(field, sigma_px * scale))


def motion_blur(image: Image, rng: np.random.Generator, radius_px: float, sigma_px: float) -> Image:
    """A trail that fades to one side, within 45 degrees of the horizontal."""
    scale = scale_of(image)
    angle = math.radians(rng.uniform(-45.0, 45.0))
    return pixels(trailed(light(image), radius_px * scale, sigma_px * scale, angle))


def zoom_blur(image: Image, rng: np.random.Generator, most: float, step: float) -> Image:
    """The mean of the picture and its enlargements about the middle."""
    field = light(image)
    factors = 1 + step * np.arange(round((most - 1) / step) + 1)
    layers = [zoomed(field, factor, (0.5, 0.5)) for factor in factors]
    return pixels((field + sum(layers)) / (len(layers) + 1))


def driving_blur(image: Image, rng: np.random.Generator, growth: float) -> Image:
    """The road streams from the vanishing point outwards while the shutter is open.

    `growth` is how much the picture is enlarged meanwhile, so the smear grows with the distance from
    that point. Doubling halves the work: each pass averages the picture with a larger one.
    """
    height = _VANISHING_YX[0] + rng.uniform(-0.05, 0.05)
    side = _VANISHING_YX[1] + rng.uniform(-0.08, 0.08)
    field = light(image)
    for passed in (1 / 16, 1 / 8, 1 / 4, 1 / 2):
        field = (field + zoomed(field, math.exp(passed * math.log1p(growth)), (height, side))) / 2
    return pixels(field)


def trailed(field: Field, radius_px: float, sigma_px: float, angle: float) -> Field:
    """Smeared by one half of a Gaussian of `sigma_px`, cut after 2 `radius_px`."""
    reach = max(1, round(2 * radius_px))
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    for step in range(reach + 1):
        row, column = round(step * math.sin(angle)), round(step * math.cos(angle))
        kernel[reach + row, reach + column] += math.exp(-(step**2) / (2 * sigma_px**2))
    return _filtered(field, kernel / kernel.sum())


def _disc(radius: float) -> Field:
    """How much of every pixel a disc covers, as shares of its area."""
    reach = math.ceil(radius)
    fine = (np.arange((2 * reach + 1) * _FINENESS) + 0.5) / _FINENESS - reach - 0.5
    inside = (fine[:, None] ** 2 + fine**2 <= radius**2).astype(np.float64)
    side = 2 * reach + 1
    covered = inside.reshape(side, _FINENESS, side, _FINENESS).mean(axis=(1, 3))
    return np.asarray(covered / covered.sum())


def _filtered(field: Field, kernel: Field) -> Field:
    return np.asarray(cv2.filter2D(field, -1, kernel, borderType=cv2.BORDER_REPLICATE), dtype=np.float64)
