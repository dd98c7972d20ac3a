"""The few numbers of a picture that tell whether it is fit to be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_road.frames import Frame, Image
from edge_road.preprocess import Crop
from edge_road.runtime.quality import LEAST_SIDE, Look, QualitySettings

Greys = npt.NDArray[np.int16]

SAMPLES = 96
"""points looked at along each side"""
CELL = 8
"""points along each side of a cell, the unit in which covered parts are counted"""
FINE = 320
"""sharpness is judged at this width, whatever the camera's"""
LEAST_POINTS = 2
"""looked at along each side, or there is no step between them"""
TILES = (12, 6)
"""rows and columns of parts whose bytes are compared with those of the pictures before"""
FLAT = 0.01
"""variance within a cell; rounding alone makes as much of a cell of one value"""
QUARTILES_APART = 1.349
"""standard deviations of a normal distribution between its quartiles"""
LEAST_RANGE = 8.0
"""grey levels; a flatter picture has no edges whose sharpness could be told"""


def look_at(frame: Frame, settings: QualitySettings, crops: Sequence[Crop] = (Crop(),)) -> Look:
    """Of the part that is judged: a clock beside it tells nothing of the road, and of the camera no more."""
    size = (frame.pixels.shape[0], frame.pixels.shape[1])
    judged = _enclosing(crops)
    part = judged.cut(frame.pixels)
    grey = _sampled_grey(part, _strides(frame.pixels))
    if min(part.shape[:2]) < LEAST_SIDE or min(grey.shape) < LEAST_POINTS:
        return Look(frame.captured_mono_ns, size, 0.0, 0.0, 0.0, 0.0, 0.0, (), (1.0,) * len(crops))
    dense, fine = _sampled_grey(part, _strides(part)), _fine_steps(frame.pixels)
    return Look(
        captured_mono_ns=frame.captured_mono_ns,
        size=size,
        dark=float((dense < settings.dark_level).mean()),
        bright=float((dense >= settings.bright_level).mean()),
        detail=float(max(np.abs(np.diff(grey, axis=0)).mean(), np.abs(np.diff(grey, axis=1)).mean())),
        sharpness=_sharpness(grey, judged.cut(fine)),
        structure=_structure(dense),
        fingerprint=_fingerprint(part),
        blind=_blind_shares(fine, crops, settings.blind_detail),
    )


def _enclosing(crops: Sequence[Crop]) -> Crop:
    """Of several regions the part around them all: a small one alone is too smooth to be told from noise."""
    return Crop(
        left=min(crop.left for crop in crops),
        top=min(crop.top for crop in crops),
        right=max(crop.right for crop in crops),
        bottom=max(crop.bottom for crop in crops),
    )


def _sharpness(grey: Greys, fine: Greys) -> float:
    """A picture in focus has a few steep edges, however smooth the rest is: look at the steepest 0.5 %."""
    values, steps = np.sort(grey, axis=None), np.sort(fine, axis=None)
    grey_range = float(values[int(0.99 * (values.size - 1))]) - float(values[int(0.01 * (values.size - 1))])
    return float(steps[int(0.995 * (steps.size - 1))]) / max(LEAST_RANGE, grey_range)


def _structure(grey: Greys) -> float:
    """Means over n independent points spread by 1 / sqrt(n) of the points' own spread: 1 is pure noise.

    Told by all cells, and by the middle half of those that are not flat: a clock covers few of them.
    """
    points_CP = _cells(grey).swapaxes(1, 2).reshape(-1, CELL * CELL).astype(np.float32)
    means_C = points_CP.mean(axis=1)
    variances_C = np.einsum("cp,cp->c", points_CP, points_CP) / CELL**2 - means_C**2
    by_all = float(means_C.std()) / max(1e-6, float(grey.std()))
    alive = variances_C > FLAT
    count = int(alive.sum())
    if count == 0:
        return 0.0
    usual = math.sqrt(np.sort(variances_C[alive])[count // 2])
    low, high = np.sort(means_C[alive])[[count // 4, 3 * count // 4]]
    return CELL * min(by_all, float(high - low) / QUARTILES_APART / usual)


def _fingerprint(part: Image) -> tuple[int, ...]:
    """A weighted sum over the bytes of each tile, eight at a time."""
    rows = part[:: _stride(part.shape[0])]
    lines, words = rows.shape[0] // TILES[0], rows.shape[1] * 3 // 8 // TILES[1]
    flat = rows[: lines * TILES[0]].reshape(lines * TILES[0], -1)[:, : words * 8 * TILES[1]]
    tiles = np.ascontiguousarray(flat).view(np.uint64).reshape(TILES[0], lines, TILES[1], words)
    weights = np.arange(1, 2 * lines * words, 2, dtype=np.uint64).reshape(lines, 1, words)
    return tuple((tiles * weights).sum(axis=(1, 3)).ravel().tolist())


def _blind_shares(fine: Greys, crops: Sequence[Crop], blind_detail: float) -> tuple[float, ...]:
    blind = (_cells(fine).mean(axis=(1, 3), dtype=np.float32) < blind_detail).astype(np.uint8)
    return tuple(float(crop.cut(blind).mean()) for crop in crops)


def _cells(values: Greys) -> Greys:
    """Whole ones; the few points beyond the last one are left out."""
    rows, columns = values.shape[0] // CELL, values.shape[1] // CELL
    return values[: rows * CELL, : columns * CELL].reshape(rows, CELL, columns, CELL)


def _fine_steps(pixels: Image) -> Greys:
    """|difference| over 1/320 of the width at each point that is looked at."""
    width = pixels.shape[1]
    reach = max(1, round(width / FINE))
    down, across = _strides(pixels)
    rows = pixels[::down, :, 1]
    ahead = rows[:, reach::across].astype(np.int16)
    return np.asarray(np.abs(ahead - rows[:, ::across][:, : ahead.shape[1]]))


def _sampled_grey(pixels: Image, strides: tuple[int, int]) -> Greys:
    """Green carries most of the brightness, and a plain copy is ten times as fast as a mean."""
    down, across = strides
    return pixels[::down, ::across, 1].astype(np.int16)


def _strides(pixels: Image) -> tuple[int, int]:
    return _stride(pixels.shape[0]), _stride(pixels.shape[1])


def _stride(length: int) -> int:
    return max(1, length // SAMPLES)
