"""Endless textures: noise that repeats without a seam, made once a process and looked up anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import cv2
import numpy as np

from edge_road.synthetic.colours import Field

SIZE = 256  # small enough that a scene's dozen tiles stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Tile:
    """One period of a texture; `finest` is its shortest wavelength, in shares of the period."""

    values: Field
    finest: float

    def at(self, x: Field, y: Field) -> Field:
        """Values at coordinates counted in periods; any real number is inside."""
        return np.asarray(
            cv2.remap(self.values, _wrapped(x), _wrapped(y), cv2.INTER_LINEAR), dtype=np.float32
        )


def _wrapped(periods: Field) -> Field:
    # Far quicker than np.mod or cv2.BORDER_WRAP, and remap is limited to 15-bit coordinates.
    pixels = np.floor(periods)
    np.subtract(periods, pixels, out=pixels)
    pixels *= SIZE
    return pixels


def _with_seam(values: Field) -> Field:
    """The first row and column once more at the end, so that look-ups blend over the seam."""
    return np.pad(values, ((0, 1), (0, 1)), mode="wrap")


def _band_noise(seed: int, coarsest: float, finest: float) -> Field:
    """Gaussian noise whose wavelengths lie between two shares of the period; unit variance."""
    white = np.random.default_rng(seed).standard_normal((SIZE, SIZE))
    cycles = np.hypot(np.fft.fftfreq(SIZE)[:, None], np.fft.rfftfreq(SIZE)[None, :]) * SIZE
    inside = (cycles >= 1 / coarsest) & (cycles <= 1 / finest)
    # Power falls with frequency, as in clouds and soil, so that large shapes carry fine edges.
    spectrum = np.where(inside, 1 / np.maximum(cycles, 1), 0) * np.fft.rfft2(white)
    values = np.fft.irfft2(spectrum, s=(SIZE, SIZE))
    return np.asarray(values / values.std(), dtype=np.float32)


@cache
def noise(seed: int, coarsest: float = 1 / 6, finest: float = 1 / 40) -> Tile:
    return Tile(_with_seam(_band_noise(seed, coarsest, finest)), finest)


@cache
def ridges(seed: int, width: float = 0.07) -> Tile:
    """A net of thin lines (1 on a line, 0 elsewhere): where smooth noise crosses zero."""
    field = _band_noise(seed, 1 / 4, 1 / 18)
    gate = np.clip(_band_noise(seed + 1, 1 / 2, 1 / 6) + 0.6, 0, 1)
    lines = np.clip(1 - np.abs(field) / width, 0, 1) * gate
    return Tile(_with_seam(lines.astype(np.float32)), 1 / 50)


@cache
def stones(seed: int, per_side: int = 24) -> Tile:
    """Pebbles side by side: bright middles, dark gaps, each with its own shade (zero mean)."""
    rng = np.random.default_rng(seed)
    centres = (np.indices((per_side, per_side)).reshape(2, -1).T + rng.random((per_side**2, 2))) / per_side
    wrapped = np.concatenate([centres + np.array(shift) for shift in product((-1, 0, 1), repeat=2)])
    seeds = np.ones((SIZE * 3, SIZE * 3), dtype=np.uint8)
    rows, columns = np.floor((wrapped + 1) * SIZE).astype(int).clip(0, SIZE * 3 - 1).T
    seeds[rows, columns] = 0
    # The label image tells each pixel which stone is nearest; stones keep one shade everywhere.
    gap, nearest = cv2.distanceTransformWithLabels(seeds, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    shade_of_label = np.zeros(nearest.max() + 1, dtype=np.float32)
    shade_of_label[nearest[rows, columns]] = np.tile(rng.normal(0, 0.8, per_side**2), 9)
    dome = 1 - gap / gap.max() * 2.2
    middle = slice(SIZE, 2 * SIZE)
    values = (dome + shade_of_label[nearest])[middle, middle]
    values = (values - values.mean()) / values.std()
    return Tile(_with_seam(values.astype(np.float32)), 1 / per_side)
