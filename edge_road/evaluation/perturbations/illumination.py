"""Light that the camera cannot cope with: a low sun, and lamps that flicker under a rolling shutter."""

from __future__ import annotations

import math

import numpy as np

from edge_road.evaluation.perturbations.pixels import light, pixels
from edge_road.frames import Image

_SUN_COLOUR = np.array([1.0, 0.93, 0.78])


def low_sun(image: Image, rng: np.random.Generator, strength: float) -> Image:
    """Glare about a sun near the horizon, its mirror on the road below, and a veil over everything."""
    height, width = image.shape[:2]
    down_HW, along_HW = np.indices((height, width)) / height
    row, column = rng.uniform(0.12, 0.38), width / height * rng.uniform(0.2, 0.8)
    aside_HW, below_HW = along_HW - column, down_HW - row
    near_HW = aside_HW**2 + below_HW**2
    disc_HW = 1.6 / (1 + (near_HW / 0.006) ** 2)
    glow_HW = 0.9 / (1 + near_HW / 0.03)
    mirror_HW = 0.8 / (1 + (aside_HW / 0.07) ** 2) * np.clip((down_HW - 0.5) / 0.15, 0.0, 1.0)
    sun_HW = strength * (disc_HW + glow_HW + 0.7 * mirror_HW + 0.22)
    return pixels(light(image) * (1 - 0.25 * strength) + sun_HW[..., None] * _SUN_COLOUR)


def bands(image: Image, rng: np.random.Generator, depth: float) -> Image:
    """Lamps on mains or pulse-width light the rows unevenly: dark bands as deep as `depth`."""
    height = image.shape[0]
    cycles, phase = rng.uniform(2.5, 6.0), rng.uniform(0.0, 2 * math.pi)
    wave_H = np.sin(2 * math.pi * cycles * np.arange(height) / height + phase)
    # Steeper than a sine: a lamp is on or off, and a row's exposure smooths it a little.
    lit_H = 1 - depth * (0.5 - 0.5 * np.clip(1.8 * wave_H, -1.0, 1.0))
    return pixels(light(image) * lit_H[:, None, None])
