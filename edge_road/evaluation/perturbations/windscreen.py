"""What lies on the glass before the camera: drops, dirt and the wiper."""

from __future__ import annotations

import math

import cv2
import numpy as np

from edge_road.evaluation.perturbations.pixels import clouds, light, mixed, pixels, sampled, scale_of, smooth
from edge_road.frames import Image

_LENS_POWER = -1.6  # a drop shows the scene upside down and smaller
_MUD_COLOUR = np.array([0.33, 0.27, 0.20])
_ARCS = 512
_BLADE_COLOUR = np.array([0.03, 0.03, 0.035])
_FILM_COLOUR = np.array([0.80, 0.81, 0.82])


def droplets(image: Image, rng: np.random.Generator, count: int, radius_px: float) -> Image:
    """Round drops, each a small lens with a dark rim and a bright spot; between them the scene is clear."""
    height, width = image.shape[:2]
    radii = np.maximum(2.0, radius_px * scale_of(image) * rng.uniform(0.5, 1.4, count))
    centres_yx = rng.random((count, 2)) * (height, width)
    which_HW = np.full((height, width), -1, np.int32)
    for drop, (row, column) in enumerate(np.rint(centres_yx).astype(int).tolist()):
        cv2.circle(which_HW, (column, row), round(float(radii[drop])), drop, -1)
    down_HW, along_HW = np.indices((height, width)) - centres_yx[which_HW].transpose(2, 0, 1)
    wet_HW = which_HW >= 0
    out_HW = np.where(wet_HW, np.sqrt(down_HW**2 + along_HW**2) / radii[which_HW], 0.0)
    power_HW = np.where(wet_HW, _LENS_POWER * (1 + out_HW**2) - 1, 0.0)
    rows_HW, columns_HW = np.indices((height, width))
    field = light(image)
    soft = smooth(field, 1.2 * scale_of(image))
    seen = sampled(soft, rows_HW + power_HW * down_HW, columns_HW + power_HW * along_HW)
    rim_HW = 1 - 0.45 * np.clip(out_HW, 0, 1) ** 4
    spot_HW = ((down_HW / radii[which_HW] + 0.4) ** 2 + (along_HW / radii[which_HW] + 0.35) ** 2) < 0.035
    drop = seen * rim_HW[..., None] + 0.35 * spot_HW[..., None]
    return pixels(mixed(field, drop, smooth(wet_HW.astype(np.float64), 0.6)))


def dirt(image: Image, rng: np.random.Generator, covered: float, opacity: float) -> Image:
    """Dried mud: a film of dust, patches with soft rims, and specks."""
    shape = image.shape[:2]
    field, scale = light(image), scale_of(image)
    patches_HW = clouds(rng, shape, decay=1.6, coarsest=5)
    edge = np.quantile(patches_HW, 1 - covered)
    mud_HW = np.clip((patches_HW - edge) / 0.2 + 0.5, 0.0, 1.0)
    specks_HW = smooth((rng.random(shape) < 0.012 * covered / scale**2).astype(np.float64), 1.1 * scale)
    dust_HW = 0.25 * clouds(rng, shape, decay=2.0, coarsest=3)
    hidden_HW = np.maximum(mud_HW, np.clip(specks_HW * 9 * scale**2, 0, 1))
    share_HW = np.clip(opacity * (hidden_HW + dust_HW * (1 - hidden_HW)), 0.0, 1.0)
    soft = mixed(field, smooth(field, 2 * scale), np.clip(2 * share_HW, 0, 1))
    return pixels(mixed(soft, _MUD_COLOUR * (0.7 + 0.6 * patches_HW[..., None]), share_HW))


def wiper(image: Image, rng: np.random.Generator, width: float, film: float) -> Image:
    """The blade on its way across, and behind it the arcs of water that it smears."""
    height, columns = image.shape[:2]
    down_HW, along_HW = np.indices((height, columns)) / height
    pivot_x, pivot_y = columns / height * rng.uniform(0.25, 0.75), 1.25
    angle = rng.uniform(-0.75, 0.75)  # from upright
    x_HW, y_HW = along_HW - pivot_x, pivot_y - down_HW
    beside_HW = x_HW * math.cos(angle) - y_HW * math.sin(angle)
    from_pivot_HW = np.sqrt(x_HW**2 + y_HW**2)
    # Water runs together again: the farther behind the blade, the fewer streaks.
    behind_HW = np.clip(-beside_HW / 0.05, 0.0, 1.0) / (1 + (beside_HW / 0.7) ** 2)
    arcs = clouds(rng, (1, _ARCS), decay=1.15, coarsest=16)[0]
    streaks_HW = arcs[np.minimum(from_pivot_HW * 150, _ARCS - 1).astype(int)]
    field = light(image)
    share_HW = np.clip(film * behind_HW * (0.25 + 0.75 * streaks_HW), 0.0, 0.95)
    smeared = mixed(
        mixed(field, smooth(field, 3 * scale_of(image)), behind_HW * film), _FILM_COLOUR, share_HW
    )
    blade_HW = np.clip((width / 2 - np.abs(beside_HW)) / 0.012 + 0.5, 0.0, 1.0)
    return pixels(mixed(smeared, _BLADE_COLOUR, blade_HW))
