"""Noise of sensor and line: four of the common corruptions' kind, and the vehicle's night.

Common corruptions: Hendrycks and Dietterich (2019), with their strengths.
"""

from __future__ import annotations

import numpy as np

from edge_road.evaluation.perturbations.pixels import light, pixels
from edge_road.frames import Image

DISPLAY_GAMMA = 2.2


def gaussian_noise(image: Image, rng: np.random.Generator, sigma: float) -> Image:
    return pixels(light(image) + sigma * rng.standard_normal(image.shape))


def uniform_noise(image: Image, rng: np.random.Generator, reach_255: float) -> Image:
    """Every value moves by at most `reach_255`, all distances being equally likely."""
    return pixels(light(image) + reach_255 / 255 * rng.uniform(-1.0, 1.0, image.shape))


def shot_noise(image: Image, rng: np.random.Generator, photons: float) -> Image:
    """White is `photons` on average; what arrives is Poisson."""
    return pixels(rng.poisson(light(image) * photons) / photons)


def impulse_noise(image: Image, rng: np.random.Generator, share: float) -> Image:
    """Single values, not whole pixels, turn black or white."""
    draw_HWC = rng.random(image.shape)
    spotted: Image = image.copy()
    spotted[draw_HWC < share / 2] = 0
    spotted[draw_HWC > 1 - share / 2] = 255
    return spotted


def night(
    image: Image, rng: np.random.Generator, brightness: float, electrons: float, read_noise: float
) -> Image:
    """Little light at high gain: few electrons (Poisson), and the read-out noise of the amplifier.

    `electrons` fill a white pixel; `brightness` is the picture's after gain, against daylight.
    """
    linear = np.array([(value / 255) ** DISPLAY_GAMMA for value in range(256)])
    counted = rng.poisson(linear[image] * electrons) + read_noise * rng.standard_normal(image.shape)
    return pixels(brightness * np.maximum(counted / electrons, 0.0) ** (1 / DISPLAY_GAMMA))
