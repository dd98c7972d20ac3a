"""Chooses at random what stands beside a road."""

from __future__ import annotations

import numpy as np

from edge_road.synthetic import sprites
from edge_road.synthetic.colours import Colour, varied
from edge_road.synthetic.pavement import Pavement
from edge_road.synthetic.scenery import LOOP_M, House, Lamp, LeadCar, Scenery, Thing, Tree
from edge_road.synthetic.sky import Sky

_FOLIAGE: dict[str, tuple[Colour, ...]] = {
    "leafy": ((0.22, 0.34, 0.12), (0.30, 0.38, 0.14), (0.52, 0.38, 0.12), (0.62, 0.66, 0.68)),
    "conifer": ((0.13, 0.22, 0.13), (0.16, 0.24, 0.18), (0.42, 0.48, 0.50)),
    "bare": ((0.28, 0.24, 0.21), (0.36, 0.33, 0.32), (0.60, 0.62, 0.66)),
}
_WALLS: tuple[Colour, ...] = ((0.62, 0.56, 0.46), (0.55, 0.34, 0.26), (0.70, 0.70, 0.68), (0.42, 0.44, 0.47))
_CARS: tuple[Colour, ...] = (
    (0.7, 0.7, 0.72),
    (0.12, 0.12, 0.14),
    (0.5, 0.1, 0.1),
    (0.15, 0.22, 0.42),
    (0.85, 0.85, 0.85),
)


def random_scenery(rng: np.random.Generator, pavement: Pavement, sky: Sky) -> Scenery:
    edge_m = pavement.half_width_m
    things: list[Thing] = []
    for side in (-1, 1):
        things += _random_side(rng, side, edge_m, late=sky.headlights > 0)
    rails = tuple(side * (edge_m + 0.5) for side in (-1, 1) if rng.random() < 0.22)
    car = _random_car(rng, pavement, sky) if rng.random() < 0.35 else None
    return Scenery(tuple(things), rails, car)


def _random_side(rng: np.random.Generator, side: int, edge_m: float, late: bool) -> list[Thing]:
    kind = rng.choice(["forest", "avenue", "town", "open"], p=[0.35, 0.25, 0.2, 0.2])
    if kind == "town":
        return _town(rng, side, edge_m, late)
    count = {"forest": 11, "avenue": 6, "open": 2}[str(kind)]
    nearest_m = edge_m + {"forest": 5.0, "avenue": 2.5, "open": 12.0}[str(kind)]
    return _trees(rng, side, nearest_m, count)


def _trees(rng: np.random.Generator, side: int, nearest_m: float, count: int) -> list[Thing]:
    species = str(rng.choice(sprites.KINDS))
    tint = _FOLIAGE[species][rng.integers(len(_FOLIAGE[species]))]
    places = (np.arange(count) + rng.uniform(-0.3, 0.3, count)) * (LOOP_M / count)
    return [
        Tree(
            across_m=side * (nearest_m + rng.exponential(4.0)),
            along_m=float(place),
            height_m=rng.uniform(5.0, 13.0),
            kind=species,
            number=int(rng.integers(sprites.PER_KIND)),
            tint=varied(tint, rng),
        )
        for place in places
    ]


def _town(rng: np.random.Generator, side: int, edge_m: float, late: bool) -> list[Thing]:
    things: list[Thing] = []
    set_back_m = edge_m + rng.uniform(3.0, 6.0)
    for place in np.arange(0, LOOP_M, 26.0):
        wall = varied(_WALLS[rng.integers(len(_WALLS))], rng)
        length_m, height_m = rng.uniform(12, 22), rng.uniform(4.5, 14)
        things.append(
            House(side * set_back_m, float(place), length_m, height_m, wall, late and rng.random() < 0.6)
        )
    for place in np.arange(10.0, LOOP_M, 32.5):
        things.append(Lamp(side * (edge_m + 0.8), float(place), late))
    return things


def _random_car(rng: np.random.Generator, pavement: Pavement, sky: Sky) -> LeadCar:
    return LeadCar(
        across_m=pavement.lane_m / 2 + rng.normal(0, 0.2),
        ahead_m=rng.uniform(11.0, 45.0),
        tint=_CARS[rng.integers(len(_CARS))],
        lights=1.0 if sky.headlights > 0 else rng.uniform(0, 0.6),
    )
