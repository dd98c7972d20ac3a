"""Differences of several artefacts under every condition, and which of them are more than chance."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from edge_road.config import StrictModel
from edge_road.evaluation.judge import Judged
from edge_road.evaluation.perturbations import FAMILIES
from edge_road.evaluation.significance import Difference, paired_bootstrap

Shares = npt.NDArray[np.float64]


class Comparison(StrictModel):
    entry: int
    """position of the entry that is compared with the first one"""
    conditions: dict[str, Difference]
    """of the accuracy"""
    danger: dict[str, Difference]
    """of the danger rate, by condition; empty without icy pictures"""
    families: dict[str, Difference]
    """of the accuracy, as the mean over the five severities, where all were measured"""


def compare_with_first(judged: Sequence[Judged], seed: int) -> tuple[Comparison, ...]:
    return tuple(_compare(number, each, judged[0], seed) for number, each in enumerate(judged) if number)


def _compare(entry: int, one: Judged, first: Judged, seed: int) -> Comparison:
    measured = one.right.keys() & first.right.keys()
    return Comparison(
        entry=entry,
        conditions=_differences(one.right, first.right, seed),
        danger=_differences(one.missed, first.missed, seed),
        families={
            name: _difference(_mean_of(one.right, name), _mean_of(first.right, name), seed, name)
            for name, family in FAMILIES.items()
            if measured >= set(family.names)
        },
    )


def _differences(
    shares: Mapping[str, Shares], base: Mapping[str, Shares], seed: int
) -> dict[str, Difference]:
    both = [name for name in shares if name in base and len(base[name])]
    return {name: _difference(shares[name], base[name], seed, name) for name in both}


def _mean_of(right: Mapping[str, Shares], family: str) -> Shares:
    return np.asarray(np.mean([right[name] for name in FAMILIES[family].names], axis=0))


def _difference(right_N: Shares, base_N: Shares, seed: int, name: str) -> Difference:
    """Seeded by the name alone: the order and number of conditions change nothing."""
    generator = np.random.default_rng((seed, zlib.crc32(name.encode())))
    return paired_bootstrap(right_N, base_N, generator)
