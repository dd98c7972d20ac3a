"""Finds a perturbation or a suite of them by name, and applies it to images with a seed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

from edge_road.errors import ConfigError, suggestion
from edge_road.evaluation.perturbations import paper
from edge_road.evaluation.perturbations.families import (
    COMMON,
    DIALS,
    FAMILIES,
    ROAD,
    Apply,
    Perturbation,
    then,
)
from edge_road.frames import Images

CLEAN = "clean"


def _row(
    name: str, title: str, apply: Apply, level: float | None = None, random: bool = True
) -> Perturbation:
    return Perturbation(name, title, apply, name, level, random)


def _dialled(name: str, dial: str, value: int, title: str | None = None) -> Perturbation:
    """A row that also answers to `dial:value`."""
    at = DIALS[dial].at(str(value))
    return Perturbation(name, title or at.title, at.apply, dial, value, at.random)


_NOISE_40 = DIALS["gaussian"].at("40").apply
_PAPER = (
    *(_dialled(f"gaussian_{level}", "gaussian", level) for level in (10, 30, 40, 60)),
    _dialled("occlusion", "occlusion", 20, "occlusion"),
    _row("occlusion+gaussian_40", "occlusion + noise 40/255", then(paper.occlusion, _NOISE_40)),
    _dialled("down_up", "down_up", 3),
    _row("down_up+occlusion", "down-up + occlusion", then(paper.down_up, paper.occlusion)),
    _dialled("stripes", "stripes", 10, "stripes"),
    _row("down_up+stripes", "down-up + stripes", then(paper.down_up, paper.stripes)),
)
_MORE = (
    _dialled("salt_pepper", "salt_pepper", 5, "salt and pepper"),
    _dialled("jpeg", "jpeg", 10),
    _row("motion_blur", "motion blur", paper.motion_blur),
    _dialled("dark", "dark", 30),
)
PERTURBATIONS: dict[str, Perturbation] = {row.name: row for row in (*_PAPER, *_MORE)}
"""The rows of every report, unless others are asked for."""

_COMMON_NAMES = tuple(name for family in COMMON for name in family.names)
_ROAD_NAMES = (*FAMILIES["jpeg_compression"].names, *(name for family in ROAD for name in family.names))
SUITES: dict[str, tuple[str, ...]] = {
    "default": tuple(PERTURBATIONS),
    "paper": tuple(row.name for row in _PAPER),
    "common": _COMMON_NAMES,
    "road": _ROAD_NAMES,
    "all": tuple(PERTURBATIONS) + tuple(name for family in FAMILIES.values() for name in family.names),
}


def perturbation(name: str) -> Perturbation:
    """A row, `family:severity` or `dial:value`."""
    if name in PERTURBATIONS:
        return PERTURBATIONS[name]
    head, _, value = name.partition(":")
    if head in FAMILIES:
        return FAMILIES[head].at(value)
    if head in DIALS:
        return _row_of(DIALS[head].at(value))
    raise ConfigError(
        "no such perturbation",
        got=name,
        expected=f"{', '.join(PERTURBATIONS)}, or {', '.join(FAMILIES)} with :1 to :5, "
        f"or {', '.join(DIALS)} with :value",
        fix=suggestion(name, (*SUITES["all"], *FAMILIES, *DIALS)),
    )


def find_perturbation(name: str) -> Perturbation | None:
    """None for a name of another version."""
    try:
        return perturbation(name)
    except ConfigError:
        return None


def expand(names: Iterable[str]) -> list[str]:
    """Suites by their members; every name once, checked, as it will stand in a report."""
    members = (member for name in names for member in SUITES.get(name, (name,)))
    return list(dict.fromkeys(perturbation(member).name for member in members))


def perturb(images_NHWC: Images, name: str, seed: int, run: int, first: int = 0) -> Images:
    """New images; the i-th one's generator depends on (seed, stream of the name, run, first + i) alone."""
    found = perturbation(name)
    key = (seed, zlib.crc32(found.stream.encode()), run)
    perturbed_NHWC = np.empty_like(images_NHWC)
    for position, image in enumerate(images_NHWC):
        perturbed_NHWC[position] = found.apply(image, np.random.default_rng((*key, first + position)))
    return perturbed_NHWC


def _row_of(dialled: Perturbation) -> Perturbation:
    """`gaussian:40` is the row `gaussian_40`, with the same pixels."""
    for row in PERTURBATIONS.values():
        if (row.family, row.level) == (dialled.family, dialled.level):
            return row
    return dialled
