"""What the perturbations share: light between 0 and 1, resampling, smooth random fields.

All of it is double precision: a last bit that differs between machines then never reaches a pixel.
Lengths are given for pictures whose shorter side is 224, and grow with the picture.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.frames import Image

Field = npt.NDArray[np.float64]
REFERENCE_SIDE_PX = 224
_HALF = 0.5 + 1e-7
_LEAST_SCALE = 1 / 3  # below 75 px a smaller blur would be none


def light(image: Image) -> Field:
    return np.multiply(image, 1 / 255, dtype=np.float64)


def pixels(light_HWC: Field) -> Image:
    """Values beyond black and white saturate, as in a camera; a half goes up, though its last bits differ."""
    return np.asarray(np.clip(light_HWC, 0.0, 1.0) * 255.0 + _HALF, dtype=np.uint8)


def scale_of(image: Image | Field) -> float:
    height, width = image.shape[:2]
    return float(max(min(height, width) / REFERENCE_SIDE_PX, _LEAST_SCALE))


def smooth(field: Field, sigma_px: float, border: int = cv2.BORDER_REPLICATE, reach: float = 4.0) -> Field:
    """Gaussian blur; its kernel ends at `reach` sigma."""
    side = 2 * round(reach * sigma_px) + 1
    return np.asarray(cv2.GaussianBlur(field, (side, side), sigma_px, borderType=border), dtype=np.float64)


def zoomed(field: Field, factor: float, centre_yx: tuple[float, float]) -> Field:
    """Enlarged about a point of the picture (0 to 1 down and across), cut to its size."""
    rows, columns = (
        _around(size, factor, place * (size - 1)) for size, place in zip(field.shape[:2], centre_yx)
    )
    return _blend(_blend(field, rows, axis=0), columns, axis=1)


def resized(field: Field, shape: tuple[int, int]) -> Field:
    """Corner stays corner."""
    rows, columns = (np.linspace(0, old - 1, new) for old, new in zip(field.shape[:2], shape))
    return _blend(_blend(field, rows, axis=0), columns, axis=1)


def sampled(field_HWC: Field, rows_HW: Field, columns_HW: Field) -> Field:
    """The picture seen at other places, linearly interpolated; its border goes on outside."""
    height, width = field_HWC.shape[:2]
    flat = field_HWC.reshape(height * width, -1)
    top_HW, below_HW, down_HW = _between(rows_HW, height)
    left_HW, beside_HW, along_HW = _between(columns_HW, width)
    down, along = down_HW[..., None], along_HW[..., None]
    upper = flat[top_HW * width + left_HW] * (1 - along) + flat[top_HW * width + beside_HW] * along
    lower = flat[below_HW * width + left_HW] * (1 - along) + flat[below_HW * width + beside_HW] * along
    return np.asarray(upper * (1 - down) + lower * down)


def clouds(rng: np.random.Generator, shape: tuple[int, int], decay: float, coarsest: int = 2) -> Field:
    """A fractal between 0 and 1: random grids, each twice as fine and `decay` times as weak as the last."""
    field = np.zeros(shape)
    cells, strength = coarsest, 1.0
    while cells < 2 * max(shape):
        grid = rng.random((min(cells, shape[0]) + 1, min(cells, shape[1]) + 1))
        field += strength * resized(grid, shape)
        cells, strength = 2 * cells, strength / decay
    field -= field.min()
    return np.asarray(field / field.max())


def mixed(below_HWC: Field, above: Field, share_HW: Field) -> Field:
    return np.asarray(below_HWC + share_HW[..., None] * (above - below_HWC), dtype=np.float64)


def _around(size: int, factor: float, centre: float) -> Field:
    return np.asarray(centre + (np.arange(size) - centre) / factor, dtype=np.float64)


def _between(places: Field, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Field]:
    """The neighbours of each place and how far it lies from the first to the second."""
    inside = np.clip(places, 0, size - 1)
    first = inside.astype(np.int64)
    return first, np.minimum(first + 1, size - 1), inside - first


def _blend(field: Field, places: Field, axis: int) -> Field:
    first, second, share = _between(places, field.shape[axis])
    share = np.expand_dims(share, tuple(other for other in range(field.ndim) if other != axis))
    return np.take(field, first, axis) * (1 - share) + np.take(field, second, axis) * share
