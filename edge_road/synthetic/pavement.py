"""The bare road and its verges: asphalt or concrete with its damage, lane marks, grass and soil.

Colours are planar (3 x rows x width), 0 to 1, before any light falls on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edge_road.synthetic import tiles
from edge_road.synthetic.camera import Ground, strip
from edge_road.synthetic.colours import Colour, Field, clamped, planar

WHITE_PAINT: Colour = (0.92, 0.92, 0.88)
YELLOW_PAINT: Colour = (0.86, 0.66, 0.18)
_WHEEL_TRACK_M = 0.75


@dataclass(frozen=True)
class Patch:
    """A rectangle of newer asphalt or a stain, repeated every `period_m` of road."""

    left_m: float
    width_m: float
    begin_m: float
    length_m: float
    shade: float
    period_m: float = 60.0


@dataclass(frozen=True)
class Pavement:
    lane_m: float
    shoulder_m: float
    tint: Colour
    grain: float
    blotches: float
    cracks: float
    patches: tuple[Patch, ...]
    joint_m: float
    """distance between the joints of concrete slabs; 0 for none"""
    centre_paint: Colour
    dashed: bool
    paint: float
    """share of the paint that traffic has left"""
    verge_tint: Colour
    place: float
    """where in the endless textures this road lies"""

    @property
    def half_width_m(self) -> float:
        return self.lane_m + self.shoulder_m


def textured(
    tile: tiles.Tile, ground: Ground, travel_m: float, period_m: float, stretch: float, place: float
) -> Field:
    """A tile laid on the ground, faded out where its detail is finer than a pixel."""
    along_m = period_m * stretch
    shift = (travel_m / along_m + 0.37 * place) % 1.0
    x = ground.across_m * (1 / period_m) + (place % 1.0)
    y = ground.ahead_m * (1 / along_m) + shift
    blur = ground.pixel_ahead_m * (1 / (2.5 * tile.finest * along_m))
    return tile.at(x, y) * clamped(1.4 - blur)


def wheel_tracks(pavement: Pavement, ground: Ground) -> Field:
    """1 where tyres roll, 0 elsewhere, on both lanes."""
    from_lane_m = np.abs(np.abs(ground.across_m) - (pavement.lane_m / 2))
    distance = (from_lane_m - _WHEEL_TRACK_M) * (1 / 0.33)
    return np.exp(-distance * distance)


def soil_texture(pavement: Pavement, ground: Ground, travel_m: float) -> Field:
    """The tufts and clods that make the verge rough and the road's edge uneven."""
    return textured(tiles.noise(4, 1 / 8, 1 / 80), ground, travel_m, 12.0, 1.0, pavement.place + 0.3)


def road_mask(pavement: Pavement, ground: Ground, soil: Field) -> Field:
    half = pavement.half_width_m
    return strip(ground.across_m + 0.05 * soil, -half, half, ground.pixel_across_m)


def paint_road(pavement: Pavement, ground: Ground, travel_m: float, tracks: Field) -> Field:
    place = pavement.place
    grain = textured(tiles.noise(1, 1 / 24, 1 / 100), ground, travel_m, 6.0, 1.0, place)
    blotches = textured(tiles.noise(2, 1 / 3, 1 / 30), ground, travel_m, 16.0, 2.5, place)
    shade = 1 + pavement.grain * grain + pavement.blotches * blotches
    shade -= (0.6 * pavement.blotches) * tracks
    for patch in pavement.patches:
        shade *= 1 + (patch.shade - 1) * _patch_mask(patch, ground, travel_m)
    if pavement.cracks:
        net = textured(tiles.ridges(11), ground, travel_m, 14.0, 1.5, place)
        shade *= 1 - pavement.cracks * net
    if pavement.joint_m:
        shade *= 1 - 0.45 * _dashes(ground, travel_m, 0.07, pavement.joint_m)
    colour_CHW = planar(pavement.tint) * clamped(shade, 0.15, 1.8)
    return _with_lane_marks(colour_CHW, pavement, ground, travel_m, blotches)


def paint_verge(pavement: Pavement, soil: Field) -> Field:
    return planar(pavement.verge_tint) * clamped(1 + 0.28 * soil, 0.3, 1.8)


def _patch_mask(patch: Patch, ground: Ground, travel_m: float) -> Field:
    across = strip(ground.across_m, patch.left_m, patch.left_m + patch.width_m, ground.pixel_across_m)
    return across * _dashes(ground, travel_m - patch.begin_m, patch.length_m, patch.period_m)


def _dashes(ground: Ground, travel_m: float, length_m: float, period_m: float) -> Field:
    """Share of each pixel inside a length that repeats every period along the road."""
    along = ground.ahead_m + (travel_m % period_m)
    along = along - period_m * np.floor(along * (1 / period_m))
    centred = (length_m / 2) - np.abs(along - (length_m / 2))
    # The next dash begins where this period ends, so look at the nearer of the two.
    centred = np.maximum(centred, along - period_m)
    pixel = ground.pixel_ahead_m
    near = clamped(centred / pixel + 0.5, 0, np.minimum(length_m / pixel, 1))
    far = clamped(pixel * (2 / period_m) - 1)
    return near + ((length_m / period_m) - near) * far


def _with_lane_marks(
    colour_CHW: Field, pavement: Pavement, ground: Ground, travel_m: float, wear: Field
) -> Field:
    left_over = pavement.paint * clamped(0.9 + 0.35 * wear)
    centre = _line(ground, 0.0, 0.14)
    if pavement.dashed:
        centre = centre * _dashes(ground, travel_m, 4.0, 10.0)
    edges = _line(ground, -pavement.lane_m, 0.13) + _line(ground, pavement.lane_m, 0.13)
    for mask, paint in ((centre, pavement.centre_paint), (edges, WHITE_PAINT)):
        alpha = mask * left_over
        colour_CHW += alpha * (planar(paint) - colour_CHW)
    return colour_CHW


def _line(ground: Ground, across_m: float, width_m: float) -> Field:
    return strip(ground.across_m, across_m - width_m / 2, across_m + width_m / 2, ground.pixel_across_m)


def random_pavement(rng: np.random.Generator) -> Pavement:
    shade = rng.uniform(0.16, 0.45) if rng.random() < 0.7 else rng.uniform(0.45, 0.64)
    concrete = shade > 0.5 and rng.random() < 0.7
    warm = rng.normal(0.0, 0.03)
    lane_m = rng.uniform(3.0, 3.7)
    return Pavement(
        lane_m=lane_m,
        shoulder_m=rng.uniform(0.2, 1.6),
        tint=(shade * (1 + warm), shade, shade * (1 - warm)),
        grain=rng.uniform(0.05, 0.1) * (1.15 - shade),
        blotches=rng.uniform(0.02, 0.045),
        cracks=rng.uniform(0.25, 0.6) if rng.random() < 0.4 else 0.0,
        patches=tuple(_random_patch(rng, lane_m) for _ in range(rng.integers(0, 3))),
        joint_m=rng.uniform(4.0, 6.0) if concrete else 0.0,
        centre_paint=YELLOW_PAINT if rng.random() < 0.35 else WHITE_PAINT,
        dashed=rng.random() < 0.7,
        paint=rng.uniform(0.5, 1.0) if rng.random() < 0.92 else 0.0,
        verge_tint=_VERGES[rng.integers(len(_VERGES))],
        place=rng.uniform(0, 1000),
    )


_VERGES: tuple[Colour, ...] = (
    (0.26, 0.38, 0.14),
    (0.36, 0.42, 0.18),
    (0.20, 0.30, 0.12),
    (0.50, 0.43, 0.26),
    (0.46, 0.40, 0.33),
    (0.40, 0.40, 0.38),
)


def _random_patch(rng: np.random.Generator, lane_m: float) -> Patch:
    return Patch(
        left_m=rng.uniform(-lane_m, lane_m - 1),
        width_m=rng.uniform(0.6, 2.8),
        begin_m=rng.uniform(0, 60),
        length_m=rng.uniform(1.0, 9.0),
        shade=rng.uniform(0.6, 0.85) if rng.random() < 0.7 else rng.uniform(1.08, 1.18),
    )
