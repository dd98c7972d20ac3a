"""What weather leaves on the ground, as amounts: water, puddles, snow, ruts, glaze."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Union

import numpy as np

from edge_road.conditions import STATES
from edge_road.errors import DataError, suggestion
from edge_road.synthetic.colours import Field

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
    # A white roadside says nothing of the road itself, so every state meets it, and ice a bare one.
    snowy_verge = rng.uniform(0.5, 1.0) if rng.random() < (0.7 if state == "icy" else 0.25) else 0.0
    if state == "dry":
        return Cover(verge_snow=snowy_verge)
    if state == "wet":
        return Cover(
            water=rng.uniform(0.85, 1.0),
            puddles=rng.uniform(0.4, 0.75),
            spray=rng.uniform(0.2, 1.0) if rng.random() < 0.4 else 0.0,
            verge_snow=snowy_verge,
        )
    return _ICY_COVERS[rng.integers(len(_ICY_COVERS))](rng, snowy_verge)


def _fresh_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(snow=rng.uniform(0.85, 1.0), ruts=rng.uniform(0, 0.25), verge_snow=max(verge, 0.8))


def _rutted_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        water=rng.uniform(0, 0.35),
        snow=rng.uniform(0.62, 0.85),
        ruts=rng.uniform(0.6, 1.0),
        packed=rng.uniform(0, 0.6),
        verge_snow=max(verge, 0.6),
    )


def _patchy_snow(rng: np.random.Generator, verge: float) -> Cover:
    return Cover(
        water=rng.uniform(0, 0.25),
        snow=rng.uniform(0.5, 0.7),
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
        snow=rng.uniform(0.46, 0.58),
        packed=rng.uniform(0.2, 1.0),
        glaze=rng.uniform(0.8, 1.0),
        verge_snow=verge,
    )


_ICY_COVERS = (_fresh_snow, _rutted_snow, _patchy_snow, _packed_snow, _glazed)
