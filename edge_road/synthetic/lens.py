"""From light to a picture: exposure, white balance, vignette, blur, sensor noise, eight bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import cv2
import numpy as np

from edge_road.frames import Image
from edge_road.synthetic.colours import Colour, Field, clamped, packed

_NOISE_SIZE = 1024
_PIVOT = 0.45  # the brightness that contrast leaves alone


@dataclass(frozen=True)
class Lens:
    exposure: float
    """mean brightness that the automatic exposure aims at"""
    adaptation: float
    """how far it gets: 0 keeps the scene's own brightness, 1 always reaches the aim"""
    balance: Colour
    contrast: float
    vignette: float
    blur: float
    """standard deviation in picture widths"""
    noise: float
    """standard deviation, of 255"""


def photograph(lens: Lens, picture: Field, rng: np.random.Generator) -> Image:
    """Light (rows x width x 3, 1 is white) to uint8; only the sensor noise is drawn from `rng`."""
    height, width = picture.shape[:2]
    if lens.blur * width > 0.3:
        picture = np.asarray(cv2.GaussianBlur(picture, (0, 0), lens.blur * width), dtype=np.float32)
    mean = max(sum(cv2.mean(picture)[:3]) / 3, 0.02)
    gain = (lens.exposure / mean) ** lens.adaptation
    # 1 - exp(-light) bends over like film, which keeps structure in bright snow and sky.
    scale = np.tile(packed(lens.balance) * -gain, width)  # one row, because inner loops of 3 are slow
    density = (picture.reshape(height, -1) * scale).reshape(picture.shape)
    density *= _vignette(height, width, lens.vignette)
    np.exp(density, out=density)
    density *= -255 * lens.contrast
    density += 255 * (lens.contrast + _PIVOT * (1 - lens.contrast))
    density += _grain(height, width, rng) * lens.noise
    return clamped(density, 0, 255).astype(np.uint8)


@lru_cache(maxsize=4)
def _corner_distance(height: int, width: int) -> Field:
    """Squared distance from the middle; 1 in the corners."""
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :, None]
    return np.repeat((x * x + y * y) / 2, 3, axis=2)


def _vignette(height: int, width: int, strength: float) -> Field:
    return 1 - strength * _corner_distance(height, width)


@cache
def _noise_tile() -> Field:
    # Drawn as doubles on purpose: once these 25 MB are freed, glibc keeps smaller blocks instead of
    # returning them to the system (mallopt, M_MMAP_THRESHOLD), which saves 1,000 page faults a scene.
    return np.random.default_rng(61).standard_normal((_NOISE_SIZE, _NOISE_SIZE, 3)).astype(np.float32)


def _grain(height: int, width: int, rng: np.random.Generator) -> Field:
    """A random window of stored noise: drawing fresh values would cost more than the picture."""
    if max(height, width) > _NOISE_SIZE // 2:
        return rng.standard_normal((height, width, 3), dtype=np.float32)
    top, left = (int(start) for start in rng.integers(0, _NOISE_SIZE // 2, 2))
    return _noise_tile()[top : top + height, left : left + width]


def random_lens(rng: np.random.Generator) -> Lens:
    warm, green = rng.normal(0, 0.04), rng.normal(0, 0.015)
    return Lens(
        exposure=rng.uniform(0.5, 1.05),
        adaptation=rng.uniform(0.5, 1.0),
        balance=(1 + warm, 1 + green, 1 - warm),
        contrast=rng.uniform(1.0, 1.3),
        vignette=rng.uniform(0, 0.3),
        blur=rng.uniform(0, 0.002),
        noise=rng.uniform(0.8, 3.0),
    )
