"""What weather leaves on the ground: water film and puddles, snow with ruts, packed snow and glaze."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Union

import numpy as np

from edge_road.conditions import STATES
from edge_road.errors import DataError, suggestion
from edge_road.synthetic import tiles
from edge_road.synthetic.camera import Ground
from edge_road.synthetic.colours import Field, clamped, planar
from edge_road.synthetic.pavement import textured

Amount = Union[float, Field]  # one for the whole ground, or one a pixel while it changes


@dataclass(frozen=True, eq=False)
class Cover:
    """Every amount is 0 to 1; all zero is a dry road between bare verges."""

    water: Amount = 0.0
    puddles: Amount = 0.0
    spray: Amount = 0.0
    snow: Amount = 0.0
    ruts: Amount = 0.0
    """how far tyres have cleared the snow"""
    packed: Amount = 0.0
    """grey, polished snow instead of white powder"""
    glaze: Amount = 0.0
    verge_snow: Amount = 0.0


def blended(before: Cover, after: Cover, share: Field) -> Cover:
    """`before` where `share` is 0, `after` where it is 1."""
    names = [field.name for field in fields(Cover)]
    pairs = {name: (getattr(before, name), getattr(after, name)) for name in names}
    return Cover(**{name: old + (new - old) * share for name, (old, new) in pairs.items()})


def random_cover(state: str, rng: np.random.Generator) -> Cover:
    if state not in STATES:
        raise DataError(
            "no such road state", got=repr(state), expected=", ".join(STATES), fix=suggestion(state, STATES)
        )
    # A white roadside says nothing of the road itself, so every state meets it.
    snowy_verge = rng.uniform(0.5, 1.0) if rng.random() < (0.8 if state == "icy" else 0.3) else 0.0
    if state == "dry":
        return Cover(verge_snow=snowy_verge)
    if state == "wet":
        return Cover(
            water=rng.uniform(0.85, 1.0),
            puddles=rng.uniform(0.3, 0.7),
            spray=rng.uniform(0.2, 1.0) if rng.random() < 0.4 else 0.0,
            verge_snow=snowy_verge,
        )
    return _ICY_COVERS[rng.integers(len(_ICY_COVERS))](rng, snowy_verge)


def _fresh_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(snow=rng.uniform(0.85, 1.0), ruts=rng.uniform(0, 0.25), verge_snow=max(verge, 0.8))


def _rutted_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        water=rng.uniform(0, 0.5),
        snow=rng.uniform(0.6, 0.85),
        ruts=rng.uniform(0.6, 1.0),
        packed=rng.uniform(0, 0.6),
        verge_snow=max(verge, 0.6),
    )


def _patchy_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        water=rng.uniform(0, 0.4),
        snow=rng.uniform(0.48, 0.68),
        ruts=rng.uniform(0, 0.4),
        packed=rng.uniform(0, 0.5),
        glaze=rng.uniform(0, 0.6),
        verge_snow=verge,
    )


def _packed_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        snow=rng.uniform(0.7, 0.95),
        ruts=rng.uniform(0.1, 0.45),
        packed=rng.uniform(0.7, 1.0),
        glaze=rng.uniform(0, 0.5),
        verge_snow=verge,
    )


def _glazed(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        water=rng.uniform(0, 0.25),
        snow=rng.uniform(0.32, 0.5),
        packed=rng.uniform(0.2, 1.0),
        glaze=rng.uniform(0.8, 1.0),
        verge_snow=verge,
    )


_ICY_COVERS = (_fresh_snow, _rutted_snow, _patchy_snow, _packed_snow, _glazed)


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

    def texture(self, tile: tiles.Tile, period_m: float, stretch: float, shift: float = 0.0) -> Field:
        return textured(tile, self.ground, self.travel_m, period_m, stretch, self.place + shift)


def soaked(colour_CHW: Field, cover: Cover, site: Site) -> Field:
    """Water fills the pores, so that less light comes back (it darkens, and hides the grain)."""
    wet = cover.water * site.road
    return colour_CHW * (1 - 0.6 * wet)


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
    lumps = site.texture(tiles.noise(22, 1 / 8, 1 / 60), 9.0, 1.0)
    combed = site.texture(tiles.noise(23, 1 / 8, 1 / 30), 8.0, 10.0)
    packed = cover.packed * site.road
    relief = 0.07 * lumps + 0.05 * (0.4 + packed) * combed * site.road
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
    lit_CHW: Field,
    cover: Cover,
    site: Site,
    puddles: Field,
    bare: Field,
    sharp_CHW: Field,
    smooth_CHW: Field,
) -> Field:
    """Puddles show the world sharply, a film of water as streaks; both more at grazing angles."""
    grazing = (1 - site.ground.steepness) ** 3
    streaks = site.texture(tiles.noise(32, 1 / 10, 1 / 50), 5.0, 8.0)
    film = cover.water * site.road * bare * (1 - puddles)
    film = film * clamped(0.1 + 0.8 * grazing * (1 + 0.25 * streaks))
    pool = puddles * bare * (0.3 + 0.6 * grazing)
    return lit_CHW * (1 - film - pool) + film * smooth_CHW + pool * sharp_CHW


def glazed(lit_CHW: Field, cover: Cover, site: Site, smooth_CHW: Field) -> Field:
    """Ice is milky: it hides the ground evenly, and shines pale without a picture in it."""
    sheets = site.texture(tiles.noise(41, 1 / 3, 1 / 24), 18.0, 1.8)
    amount = cover.glaze * site.road
    mask = amount * _soft_step(sheets + 0.9)
    grazing = (1 - site.ground.steepness) ** 2
    even_CHW: Field = smooth_CHW.mean(axis=(1, 2), keepdims=True)
    pale = 0.55 * even_CHW + 0.45 * smooth_CHW
    pale = pale * planar((0.98, 1.02, 1.08))
    strength = mask * (0.35 + 0.45 * grazing)
    return lit_CHW + strength * (pale - lit_CHW)


def _soft_step(x: Field) -> Field:
    x = clamped(x)
    return x * x * (3 - 2 * x)


def _present(amount: Amount) -> Field:
    """Fades the last traces away, so that amount 0 means none at all."""
    return clamped(np.multiply(amount, 8))
