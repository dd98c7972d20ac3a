"""The few numbers of a picture that tell whether it is fit to be judged."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_road.frames import Frame, Image
from edge_road.preprocess import Crop
from edge_road.runtime.quality import LEAST_SIDE, Look, QualitySettings

SAMPLES = 96
"""points looked at along each side"""
CELL = 8
"""points along each side of a cell, the unit in which covered parts are counted"""
FINE = 320
"""sharpness is judged at this width, whatever the camera's"""
LEAST_RANGE = 8.0
"""grey levels; a flatter picture has no edges whose sharpness could be told"""


def look_at(frame: Frame, settings: QualitySettings, crops: Sequence[Crop] = ()) -> Look:
    size = (frame.pixels.shape[0], frame.pixels.shape[1])
    if min(size) < LEAST_SIDE:
        return Look(frame.captured_mono_ns, size, 0.0, 0.0, 0.0, 0.0, 0.0, 0, (1.0,) * len(crops))
    grey = _sampled_grey(frame.pixels)
    fine = _fine_steps(frame.pixels)
    return Look(
        captured_mono_ns=frame.captured_mono_ns,
        size=size,
        dark=float((grey < settings.dark_level).mean()),
        bright=float((grey >= settings.bright_level).mean()),
        detail=float(max(np.abs(np.diff(grey, axis=0)).mean(), np.abs(np.diff(grey, axis=1)).mean())),
        sharpness=_sharpness(grey, fine),
        structure=_structure(grey),
        fingerprint=zlib.crc32(frame.pixels[:: _stride(frame.pixels.shape[0])].tobytes()),
        blind=_blind_shares(fine, crops, settings.blind_detail) if crops else (),
    )


def _sharpness(grey: npt.NDArray[np.int16], fine: npt.NDArray[np.int16]) -> float:
    """A picture in focus has a few steep edges, however smooth the rest is: look at the steepest 0.5 %."""
    values, steps = np.sort(grey, axis=None), np.sort(fine, axis=None)
    grey_range = float(values[int(0.99 * (values.size - 1))]) - float(values[int(0.01 * (values.size - 1))])
    return float(steps[int(0.995 * (steps.size - 1))]) / max(LEAST_RANGE, grey_range)


def _structure(grey: npt.NDArray[np.int16]) -> float:
    """Means over n independent points spread by 1 / sqrt(n) of the points' own spread: 1 is pure noise."""
    means = _cell_means(grey)
    return float(means.std() * CELL / max(1e-6, float(grey.std())))


def _blind_shares(
    fine: npt.NDArray[np.int16], crops: Sequence[Crop], blind_detail: float
) -> tuple[float, ...]:
    blind = (_cell_means(fine) < blind_detail).astype(np.uint8)
    return tuple(float(crop.cut(blind).mean()) for crop in crops)


def _cell_means(values: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
    """Of whole cells; the few points beyond the last one are left out."""
    rows, columns = values.shape[0] // CELL, values.shape[1] // CELL
    whole = values[: rows * CELL, : columns * CELL].reshape(rows, CELL, columns, CELL)
    return np.asarray(whole.mean(axis=(1, 3), dtype=np.float32))


def _fine_steps(pixels: Image) -> npt.NDArray[np.int16]:
    """|difference| over 1/320 of the width at each point that is looked at."""
    height, width = pixels.shape[:2]
    reach = max(1, round(width / FINE))
    rows = pixels[:: _stride(height), :, 1]
    ahead = rows[:, reach :: _stride(width)].astype(np.int16)
    return np.asarray(np.abs(ahead - rows[:, :: _stride(width)][:, : ahead.shape[1]]))


def _sampled_grey(pixels: Image) -> npt.NDArray[np.int16]:
    """Green carries most of the brightness, and a plain copy is ten times as fast as a mean."""
    rows, columns = _stride(pixels.shape[0]), _stride(pixels.shape[1])
    return pixels[::rows, ::columns, 1].astype(np.int16)


def _stride(length: int) -> int:
    return max(1, length // SAMPLES)
