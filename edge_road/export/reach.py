"""Calibrators: how far the values of a tensor reach, i.e. the |x| that becomes 127.

`min-max` clips nothing; `percentile` clips a fixed share; `mse` has the least mean squared error of
rounding and clipping together; `entropy` keeps the distribution of the values as well as 128 levels can
(Kullback-Leibler, Migacz 2017).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from edge_road.export.target import CalibrationMethod
from edge_road.frames import Floats

LEVELS = 127
"""of a symmetric int8: -127 to 127, with zero exactly in the middle"""
SMALLEST_RANGE = 1e-5  # a scale of zero is refused by TensorRT and means nothing
LEAST_SCALE = 2.0**-14
"""the smallest normal number of float16; a scale below it would lose digits"""
BINS = 2048
CANDIDATES = 64
_LEAST_ENTROPY_BINS = 128

Histogram = npt.NDArray[np.float64]
"""counts of |x| in equal bins from 0 to the largest value"""


def half_scales(scales: npt.NDArray[np.floating]) -> Floats:
    """The float16 numbers next above: a scale is the same in both precisions, and clips nothing new."""
    floored = np.maximum(scales, LEAST_SCALE)
    halves = floored.astype(np.float16)
    above = np.nextafter(halves, np.float16(np.inf))
    return np.asarray(np.where(halves.astype(np.float64) >= floored, halves, above), np.float32)


def reach(values: Floats, largest: float, method: CalibrationMethod, percentile: float) -> float:
    """`values` are drawn from a tensor whose largest |x| is `largest`."""
    if largest <= SMALLEST_RANGE:
        return SMALLEST_RANGE
    if method == "min-max":
        return largest
    sizes = np.abs(values).ravel()
    if method == "percentile":
        found = largest if percentile == 100.0 else float(np.percentile(sizes, percentile))
        return max(found, SMALLEST_RANGE)
    counts = np.histogram(sizes, bins=BINS, range=(0.0, largest))[0].astype(np.float64)
    if method == "entropy":  # every scale keeps zero, and the many zeros of a ReLU would outweigh the rest
        counts[0] = counts[1]
    penalty = _squared_error if method == "mse" else _divergence
    return max(largest * _best_bins(counts, penalty) / BINS, SMALLEST_RANGE)


def _best_bins(counts: Histogram, penalty: Callable[[Histogram, int], float]) -> int:
    """The number of bins to keep with the least penalty."""
    kept = np.linspace(_LEAST_ENTROPY_BINS, BINS, CANDIDATES).astype(int)
    return int(kept[int(np.argmin([penalty(counts, int(bins)) for bins in kept]))])


def _squared_error(counts: Histogram, kept: int) -> float:
    centres, step = np.arange(BINS) + 0.5, kept / LEVELS
    rounded = np.minimum(np.rint(centres / step), LEVELS) * step
    return float(counts @ (centres - rounded) ** 2)


def _divergence(counts: Histogram, kept: int) -> float:
    """KL(P || Q): P is the clipped histogram, Q what 128 levels keep of the unclipped part of it."""
    part = counts[:kept]
    wanted = part.copy()
    wanted[-1] += counts[kept:].sum()
    edges = np.linspace(0, kept, LEVELS + 2).astype(int)
    filled = part > 0
    sums, members = np.add.reduceat(part, edges[:-1]), np.add.reduceat(filled, edges[:-1])
    spread = np.repeat(sums / np.maximum(members, 1), np.diff(edges)) * filled
    seen = wanted > 0
    p, q = wanted / max(wanted.sum(), 1.0), spread / max(spread.sum(), 1.0)
    return float((p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-9))).sum())
