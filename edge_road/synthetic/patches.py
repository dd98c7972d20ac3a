"""Close-ups of a road surface in the manner of RSCD patches, one for each of its 27 labels.

A patch is a material with some unevenness, and water, snow or ice on it. Colours are planar
(3 x rows x width), 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edge_road.conditions import RscdLabel, rscd_label
from edge_road.frames import Image
from edge_road.synthetic import tiles
from edge_road.synthetic.camera import Camera, Ground, View
from edge_road.synthetic.colours import Colour, Field, brighter, clamped, planar, varied
from edge_road.synthetic.lens import photograph, random_lens
from edge_road.synthetic.pavement import textured

_FINE = (1 / 20, 1 / 90)
_COARSE = (1 / 3, 1 / 20)
# RSCD comes from one camera, so colour and contrast are those of the surface.
_PLAIN: dict[str, Any] = {"balance": (1.0, 1.0, 1.0), "contrast": 1.0}


@dataclass(frozen=True, eq=False)
class _Spot:
    """The ground in view, and the random choices about it."""

    ground: Ground
    rng: np.random.Generator
    place: float

    def texture(self, tile: tiles.Tile, period_m: float, stretch: float = 1.0) -> Field:
        return textured(tile, self.ground, 0.0, period_m, stretch, self.place + period_m)


def render_patch(
    label: RscdLabel | str, rng: np.random.Generator, height: int = 360, width: int = 240
) -> Image:
    """One picture of a surface with this label; equal generators give equal pixels."""
    if isinstance(label, str):
        label = rscd_label(label)
    ground = View(_random_camera(rng), height, width).ground()
    spot = _Spot(ground, rng, rng.uniform(0, 1000))
    material = label.material or ("asphalt" if rng.random() < 0.7 else "concrete")
    colour_CHW = _MATERIALS[material](spot)
    if label.unevenness:
        colour_CHW = _UNEVENNESS[label.unevenness](colour_CHW, spot)
    lit_CHW = _FRICTIONS[label.friction](colour_CHW, spot) * rng.uniform(1.3, 1.6)
    lens = replace(random_lens(rng), exposure=1.1, adaptation=rng.uniform(0, 0.25), **_PLAIN)
    return photograph(lens, np.ascontiguousarray(lit_CHW.transpose(1, 2, 0), dtype=np.float32), rng)


def _random_camera(rng: np.random.Generator) -> Camera:
    return Camera(
        height_m=rng.uniform(1.3, 1.6),
        horizon=rng.uniform(-0.65, -0.35),
        focal=rng.uniform(2.6, 3.6),
        across_m=rng.uniform(-2, 2),
        yaw=rng.normal(0, 0.08),
        roll=rng.normal(0, 0.1),
    )


# Materials


def _asphalt(spot: _Spot) -> Field:
    tint = brighter((0.98, 1.0, 1.02), spot.rng.uniform(0.26, 0.38))
    aggregate = 0.13 * spot.texture(tiles.stones(101), 0.45)
    sand = 0.06 * spot.texture(tiles.noise(102, *_FINE), 0.5)
    stains = 0.05 * spot.texture(tiles.noise(103, *_COARSE), 3.0, 3.0)
    return planar(tint) * clamped(1 + aggregate + sand + stains, 0.2, 2)


def _concrete(spot: _Spot) -> Field:
    tint = brighter((1.06, 1.0, 0.88), spot.rng.uniform(0.58, 0.72))
    sand = 0.03 * spot.texture(tiles.noise(111, *_FINE), 0.4)
    stains = 0.05 * spot.texture(tiles.noise(112, *_COARSE), 2.0)
    # Grooves across the lane are pressed into fresh concrete for grip.
    wander = 0.25 * spot.texture(tiles.noise(113, *_COARSE), 2.0)
    waves = np.sin(spot.ground.ahead_m * (2 * np.pi / 0.11) + wander)
    grooves = 0.09 * waves * clamped(1.5 - spot.ground.pixel_ahead_m * 40)
    return planar(tint) * clamped(1 + sand + stains + grooves, 0.2, 2)


def _mud(spot: _Spot) -> Field:
    tint = varied(brighter((1.3, 0.95, 0.62), spot.rng.uniform(0.26, 0.36)), spot.rng)
    clods = 0.2 * spot.texture(tiles.noise(121, 1 / 8, 1 / 50), 1.2)
    furrows = 0.22 * spot.texture(tiles.noise(122, 1 / 6, 1 / 24), 1.6, 9.0)
    return planar(tint) * clamped(1 + clods + furrows, 0.2, 2)


def _gravel(spot: _Spot) -> Field:
    tint = brighter((1.06, 1.0, 0.9), spot.rng.uniform(0.36, 0.5))
    pebbles = 0.3 * spot.texture(tiles.stones(131), 1.1) + 0.12 * spot.texture(tiles.stones(132), 0.5)
    return planar(tint) * clamped(1 + pebbles, 0.15, 2)


# Unevenness


def _smooth(colour_CHW: Field, spot: _Spot) -> Field:
    return colour_CHW


def _slight(colour_CHW: Field, spot: _Spot) -> Field:
    hollows = 1 + 0.05 * spot.texture(tiles.noise(143, *_COARSE), 2.2)
    cracks = clamped(_crack(spot) + _crack(spot))
    shade: Field = hollows * (1 - 0.8 * cracks)
    return colour_CHW * shade


def _severe(colour_CHW: Field, spot: _Spot) -> Field:
    hollows = 1 + 0.14 * spot.texture(tiles.noise(147, *_COARSE), 1.6)
    cracks = clamped(_crack(spot) + 1.8 * spot.texture(tiles.ridges(145, 0.09), 1.5))
    depth, rim = _pothole(spot)
    shade: Field = hollows * (1 - 0.8 * cracks) * (1 - 0.6 * depth + 0.35 * rim)
    return colour_CHW * shade


def _crack(spot: _Spot) -> Field:
    """1 on one wandering line through the middle of the picture."""
    across, along, width_m = _from_middle(spot)
    angle = spot.rng.uniform(0, np.pi)
    wander = 0.035 * spot.texture(tiles.noise(144, *_COARSE), 0.9)
    distance = np.abs(across * np.cos(angle) + along * np.sin(angle) + wander * width_m)
    return clamped(1.2 - distance * (70 / width_m))


def _pothole(spot: _Spot) -> tuple[Field, Field]:
    """Depth from 0 to 1, and the bright broken rim around it."""
    across, along, width_m = _from_middle(spot)
    radius_m = spot.rng.uniform(0.22, 0.34) * width_m
    ragged = np.hypot(across, along) * (1 / radius_m) + 0.12 * spot.texture(tiles.noise(149, *_COARSE), 1.0)
    return clamped((1 - ragged) * 5), clamped(1 - np.abs(ragged - 1.08) * 9)


def _from_middle(spot: _Spot) -> tuple[Field, Field, float]:
    """Metres across and along from a random point near the middle, and the width in view there."""
    ground, rows, columns = spot.ground, *spot.ground.ahead_m.shape
    row, column = int(rows * spot.rng.uniform(0.25, 0.8)), int(columns * spot.rng.uniform(0.25, 0.75))
    width_m = columns * float(ground.pixel_across_m[row, column])
    # Foreshortening: a round hole looks flat, so it is drawn longer than wide.
    along = (ground.ahead_m - ground.ahead_m[row, column]) * 0.6
    return ground.across_m - ground.across_m[row, column], along, width_m


# Water, snow and ice


def _dry(colour_CHW: Field, spot: _Spot) -> Field:
    return colour_CHW


def _wet(colour_CHW: Field, spot: _Spot) -> Field:
    """A film: dark, with a broken sheen that lies lengthwise."""
    sheen = spot.texture(tiles.noise(151, 1 / 5, 1 / 40), 2.4, 3.0)
    glints = clamped(spot.texture(tiles.noise(152, *_FINE), 0.5) - 1.6)
    shine = clamped(0.12 + 0.03 * sheen + 0.3 * glints, 0, 0.6)
    return colour_CHW * 0.5 * (1 - shine) + shine * _overhead(spot)


def _water(colour_CHW: Field, spot: _Spot) -> Field:
    """Standing water: a mirror with ripples and a sharp bank, the ground dim below it."""
    bank = spot.texture(tiles.noise(155, *_COARSE), 6.0) + spot.rng.uniform(1.5, 2.2)
    pool = clamped(bank * 9)
    ripples = spot.texture(tiles.noise(156, 1 / 10, 1 / 40), 1.2, 0.5)
    # Cracks and holes swallow part of the mirror: the water is disturbed and deeper there.
    bottom: Field = colour_CHW.mean(axis=0) / colour_CHW.mean()
    mirror = _overhead(spot) * ((0.9 + 0.2 * ripples) * clamped(bottom, 0.35, 1.1))
    deep = colour_CHW * 0.6 + mirror * 0.4
    return _wet(colour_CHW, spot) * (1 - pool) + deep * pool


def _overhead(spot: _Spot) -> Field:
    """What hangs over the road, upside down: bright sky, dark trunks or walls."""
    rows, columns = spot.ground.ahead_m.shape
    x = np.linspace(0, 0.3, columns, dtype=np.float32)[None, :] + spot.place
    y = np.linspace(0, 0.04, rows, dtype=np.float32)[:, None] + spot.place * 0.3
    shadows = tiles.noise(158, *_COARSE).at(*np.broadcast_arrays(x, y))
    sky: Colour = (0.74, 0.86, 1.02)
    return planar(sky) * clamped(0.95 - 0.25 * clamped(shadows), 0.2, 1)


def _fresh_snow(colour_CHW: Field, spot: _Spot) -> Field:
    lumps = 0.06 * spot.texture(tiles.noise(161, 1 / 5, 1 / 60), 1.5)
    white = planar((0.95, 0.97, 1.02)) * (1 + lumps)
    thin = clamped(spot.texture(tiles.noise(162, *_COARSE), 3.0) - 1.9)
    return white + thin * (colour_CHW * 0.7 - white)


def _melted_snow(colour_CHW: Field, spot: _Spot) -> Field:
    """Slush: grey heaps between wet, dark tracks."""
    heaps = spot.texture(tiles.noise(165, 1 / 4, 1 / 40), 2.0, 2.5)
    mask = clamped(heaps * 0.8 + 0.6)
    grey = planar((0.72, 0.73, 0.75)) * (1 + 0.16 * spot.texture(tiles.noise(166, *_FINE), 0.7))
    return _wet(colour_CHW, spot) * (1 - mask) + grey * mask


def _ice(colour_CHW: Field, spot: _Spot) -> Field:
    """A milky, bluish sheet, polished in streaks, with no grain of the ground left."""
    streaks = spot.texture(tiles.noise(171, 1 / 6, 1 / 50), 1.8, 6.0)
    cloud = spot.texture(tiles.noise(172, *_COARSE), 3.0)
    sheet = planar((0.66, 0.72, 0.82)) * clamped(1 + 0.1 * streaks + 0.12 * cloud, 0.4, 1.5)
    return sheet * 0.85 + 0.15 * colour_CHW


_MATERIALS: dict[str, Callable[[_Spot], Field]] = {
    "asphalt": _asphalt,
    "concrete": _concrete,
    "mud": _mud,
    "gravel": _gravel,
}
_UNEVENNESS: dict[str, Callable[[Field, _Spot], Field]] = {
    "smooth": _smooth,
    "slight": _slight,
    "severe": _severe,
}
_FRICTIONS: dict[str, Callable[[Field, _Spot], Field]] = {
    "dry": _dry,
    "wet": _wet,
    "water": _water,
    "fresh_snow": _fresh_snow,
    "melted_snow": _melted_snow,
    "ice": _ice,
}
