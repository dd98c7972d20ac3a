"""Weather in front of the lens: snow, frost and fog of the common corruptions, and spray of the road.

Hendrycks and Dietterich (2019) mix photographs of frost; here ice ferns are drawn instead.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.evaluation.perturbations.blur import trailed
from edge_road.evaluation.perturbations.pixels import (
    REFERENCE_SIDE_PX,
    Field,
    clouds,
    light,
    mixed,
    pixels,
    resized,
    scale_of,
    smooth,
    zoomed,
)
from edge_road.frames import Image

Line = npt.NDArray[np.int32]
_FLAKE_SPREAD = 0.3
_FROST_COLOUR = np.array([0.86, 0.94, 1.0])
_SPRAY_COLOUR = np.array([0.78, 0.80, 0.82])
_FERNS, _NEEDLES, _FERN_FINENESS = 34, 36, 3


def fog(image: Image, rng: np.random.Generator, density: float, decay: float) -> Image:
    """A fractal veil is added, and the whole brought back into the picture's range."""
    field = light(image)
    white = field.max()
    veil_HW = density * clouds(rng, image.shape[:2], decay)
    return pixels((field + veil_HW[..., None]) * (white / (white + density)))


def snow(
    image: Image,
    rng: np.random.Generator,
    mean: float,
    size: float,
    threshold: float,
    trail_px: float,
    trail_sigma_px: float,
    kept: float,
) -> Image:
    """Flakes are the peaks of enlarged noise, smeared as they fall; `kept` of the scene is not whitened."""
    field, scale = light(image), scale_of(image)
    height, width = (round(side / scale) for side in image.shape[:2])
    flakes_HW = zoomed(mean + _FLAKE_SPREAD * rng.standard_normal((height, width)), size, (0.5, 0.5))
    flakes_HW = np.clip(np.where(flakes_HW < threshold, 0.0, flakes_HW), 0.0, 1.0)
    falling = math.radians(rng.uniform(-135.0, -45.0))
    flakes_HW = resized(trailed(flakes_HW, trail_px, trail_sigma_px, falling), image.shape[:2])
    grey_HW1 = (field @ np.array([0.299, 0.587, 0.114]))[..., None]
    pale = kept * field + (1 - kept) * np.maximum(field, 1.5 * grey_HW1 + 0.5)
    return pixels(pale + (flakes_HW + flakes_HW[::-1, ::-1])[..., None])


def frost(image: Image, rng: np.random.Generator, kept: float, ice: float) -> Image:
    """`kept` of the scene's light and `ice` of the ferns' are added."""
    ferns_HW = _ice(rng, image.shape[:2])
    return pixels(kept * light(image) + ice * ferns_HW[..., None] * _FROST_COLOUR)


def spray(image: Image, rng: np.random.Generator, density: float) -> Image:
    """Mist that the vehicle ahead throws up: densest low in the middle, torn, blurring what is behind."""
    height, width = image.shape[:2]
    down_HW, along_HW = np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")
    row, column = 0.6 + rng.uniform(-0.06, 0.06), 0.5 + rng.uniform(-0.15, 0.15)
    distance_HW = ((down_HW - row) / 0.38) ** 2 + ((along_HW - column) / 0.5) ** 2
    torn_HW = 0.55 + 0.9 * clouds(rng, (height, width), decay=1.7, coarsest=4)
    share_HW = np.clip(density * (0.25 + torn_HW / (1 + distance_HW)), 0.0, 0.97)
    field = light(image)
    hazy = mixed(field, smooth(field, 2.5 * scale_of(image)), np.minimum(1.0, 1.5 * share_HW))
    return pixels(mixed(hazy, _SPRAY_COLOUR * (0.85 + 0.15 * torn_HW[..., None]), share_HW))


def _ice(rng: np.random.Generator, shape: tuple[int, int]) -> Field:
    """Ferns that grow inwards from the rim of the pane, on a thin uneven film."""
    fine = (_FERN_FINENESS * shape[0], _FERN_FINENESS * shape[1])
    drawn_HW = np.zeros(fine, np.uint8)
    cv2.polylines(drawn_HW, _ferns(rng, fine), False, 255, 1, cv2.LINE_AA)
    ferns_HW = drawn_HW.reshape(shape[0], _FERN_FINENESS, shape[1], _FERN_FINENESS).mean(axis=(1, 3)) / 255
    glow_HW = smooth(ferns_HW, 2.5 * max(min(shape) / REFERENCE_SIDE_PX, 0.5))
    film_HW = clouds(rng, shape, decay=1.5, coarsest=4)
    return np.asarray(np.clip(0.65 * film_HW + 0.5 * glow_HW + 0.5 * ferns_HW, 0.0, 1.0))


def _ferns(rng: np.random.Generator, shape: tuple[int, int]) -> list[Line]:
    height, width = shape
    lines = []
    for _ in range(_FERNS):
        angle = rng.uniform(-math.pi, math.pi)
        # A point on the rim of the pane, in the direction that the fern grows away from.
        rim = 0.62 * rng.uniform(0.55, 1.0)
        root = np.array([0.5 - rim * math.cos(angle), 0.5 - rim * math.sin(angle)]) * (width, height)
        lines += _fern(rng, root, angle + rng.normal(0, 0.5), rng.uniform(0.2, 0.5) * min(shape))
    return lines


def _fern(rng: np.random.Generator, root_xy: Field, angle: float, length: float) -> list[Line]:
    """A bent stem with needles at 60 degrees on both sides, the shorter the nearer to the tip."""
    bend = rng.normal(0, 0.5)
    along = np.linspace(0, 1, _NEEDLES)
    turned = angle + bend * along
    steps = np.stack([np.cos(turned), np.sin(turned)], axis=1) * (length / _NEEDLES)
    stem = root_xy + np.cumsum(steps, axis=0)
    lines = [np.rint(stem).astype(np.int32)]
    for side in (-math.pi / 3, math.pi / 3):
        reach = 0.28 * length * (1 - along) * rng.uniform(0.5, 1.0, _NEEDLES)
        tips = stem + reach[:, None] * np.stack([np.cos(turned + side), np.sin(turned + side)], axis=1)
        lines += list(np.rint(np.stack([stem, tips], axis=1)).astype(np.int32))
    return lines
