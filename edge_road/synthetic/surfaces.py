"""How water, snow and ice change the look of the ground.

Colours are planar (3 x rows x width); `lit` is what the light makes of a colour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edge_road.synthetic import tiles
from edge_road.synthetic.camera import Ground
from edge_road.synthetic.colours import Field, clamped, planar
from edge_road.synthetic.cover import Amount, Cover
from edge_road.synthetic.pavement import textured


@dataclass(frozen=True, eq=False)
class Site:
    """The ground together with what the covers need to know of it."""

    ground: Ground
    travel_m: float
    place: float
    tracks: Field
    road: Field
    """1 on the road, 0 on the verge"""
    edge: Field
    """0 in the road's middle, 1 at its edge and beyond"""
    soil: Field
    """roughness of what lies loose: earth, grass, snow"""

    def texture(self, tile: tiles.Tile, period_m: float, stretch: float) -> Field:
        return textured(tile, self.ground, self.travel_m, period_m, stretch, self.place)


def soaked(colour_CHW: Field, cover: Cover, site: Site) -> Field:
    """Water fills the pores, so that less light comes back (it darkens, and hides the grain)."""
    wet = cover.water * site.road
    return colour_CHW * (1 - 0.65 * wet)


def snow_mask(cover: Cover, site: Site) -> Field:
    """How much of each pixel snow hides."""
    drifts = site.texture(tiles.noise(21, 1 / 3, 1 / 40), 14.0, 2.2)
    level = 2 * cover.snow - 1
    level = level - 0.9 * cover.ruts * (2 * site.tracks - 0.6)
    level = level + 0.25 * (site.edge - 0.4) + 0.3 * drifts
    on_road = _soft_step(level * 2.5 + 0.5) * _present(cover.snow)
    beside = _soft_step((cover.verge_snow - 0.35 + 0.25 * drifts) * 3)
    beside = beside * _present(cover.verge_snow)
    return beside + (on_road - beside) * site.road


def snowed(colour_CHW: Field, cover: Cover, site: Site, mask: Field) -> Field:
    combed = site.texture(tiles.noise(23, 1 / 8, 1 / 30), 8.0, 10.0)
    packed = cover.packed * site.road
    relief = 0.08 * site.soil + 0.05 * (0.4 + packed) * combed * site.road
    tyres = 0.12 * cover.ruts * site.tracks * site.road
    white = 0.97 - 0.25 * packed + relief - tyres
    tint = planar((0.97, 0.99, 1.03))
    return colour_CHW + mask * (tint * white - colour_CHW)


def puddle_mask(cover: Cover, site: Site) -> Field:
    hollows = site.texture(tiles.noise(31, 1 / 3, 1 / 16), 16.0, 2.0)
    level = hollows + 0.8 * site.tracks + 0.3 * site.edge
    level = level - 2.0 + 2.4 * cover.puddles
    return _soft_step(level * 3) * site.road * _present(cover.puddles)


def mirrored(
    lit_CHW: Field, cover: Cover, site: Site, bare: Field, sharp_CHW: Field, smooth_CHW: Field
) -> Field:
    """Puddles show the world sharply, a film of water as streaks; both more at grazing angles."""
    puddles = puddle_mask(cover, site)
    grazing = (1 - site.ground.steepness) ** 3
    streaks = site.texture(tiles.noise(32, 1 / 10, 1 / 50), 5.0, 8.0)
    film = cover.water * site.road * bare * (1 - puddles)
    film = film * clamped((0.24 + 0.7 * grazing) * (1 + 0.35 * streaks))
    pool = puddles * bare * (0.4 + 0.5 * grazing)
    seen_CHW = lit_CHW * (1 - film - pool)
    seen_CHW += film * smooth_CHW
    seen_CHW += pool * sharp_CHW
    return seen_CHW


def glazed(lit_CHW: Field, cover: Cover, site: Site, smooth_CHW: Field) -> Field:
    """Ice is milky: it hides the ground evenly, and shines pale without a picture in it."""
    sheets = site.texture(tiles.noise(41, 1 / 3, 1 / 24), 18.0, 1.8)
    amount = cover.glaze * site.road
    mask = amount * _soft_step(sheets + 1.1)
    grazing = (1 - site.ground.steepness) ** 2
    # The mirrored light without its colour and most of its shapes.
    grey_HW: Field = smooth_CHW.mean(axis=0)
    pale = planar((1.16, 1.2, 1.25)) * (0.85 * float(grey_HW.mean()) + 0.15 * grey_HW)
    strength = mask * (0.5 + 0.4 * grazing)
    return lit_CHW + strength * (pale - lit_CHW)


def _soft_step(x: Field) -> Field:
    x = clamped(x)
    return x * x * (3 - 2 * x)


def _present(amount: Amount) -> Field:
    """Fades the last traces away, so that amount 0 means none at all."""
    return clamped(np.float32(8) * np.asarray(amount, dtype=np.float32))
