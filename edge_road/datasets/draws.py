"""Seeded draws of train, validation and test: picture by picture within each class, or group by group."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_road.conditions import ClassList
from edge_road.datasets.index import SPLITS, Labels, Split
from edge_road.errors import DataError
from edge_road.recipe_data import DrawnSplits

Parts = npt.NDArray[np.int64]
_TRIALS = 200


def stratified_splits(
    keys_of_classes: Sequence[Sequence[str]], classes: ClassList, settings: DrawnSplits, where: object
) -> dict[str, Split]:
    """Every class keeps its share of every split, whatever pictures the other classes have."""
    parts = [
        _split_of_class(name, keys, settings, where) for name, keys in zip(classes.names, keys_of_classes)
    ]
    return {split: _join([part[split] for part in parts]) for split in SPLITS}


def grouped_parts(groups_N: Labels, labels_N: Labels, settings: DrawnSplits, where: object) -> Parts:
    """Positions in SPLITS; no group (a day, a drive) is in two of them."""
    counts_GC = _counts(groups_N, labels_N)
    generator = np.random.default_rng(generator_seed(settings.seed))
    if not settings.folds:
        shares = [1 - settings.validation - settings.test, settings.validation, settings.test]
        return assign_groups(counts_GC, shares, generator, where)[groups_N]
    folds_G = assign_groups(counts_GC, [1 / settings.folds] * settings.folds, generator, where)
    rest = np.flatnonzero(folds_G != settings.fold)
    validation = settings.validation / (1 - settings.test_share)
    generator = np.random.default_rng((generator_seed(settings.seed), settings.fold + 1))
    parts_G = np.full(len(folds_G), SPLITS.index("test"))
    parts_G[rest] = assign_groups(counts_GC[rest], [1 - validation, validation], generator, where)
    return parts_G[groups_N]


def assign_groups(
    counts_GC: npt.NDArray[np.int64],
    shares: Sequence[float],
    generator: np.random.Generator,
    where: object = None,
) -> Parts:
    """Of many random orders the one whose parts come nearest to their shares in every class."""
    if len(counts_GC) < len(shares):
        raise DataError(
            "too few groups for so many parts",
            where=where,
            got=len(counts_GC),
            expected=f"{len(shares)} or more",
        )
    trials = [_random_parts(counts_GC.sum(axis=1), shares, generator) for _ in range(_TRIALS)]
    return min(trials, key=lambda parts_G: _deviation(parts_G, counts_GC, shares))


def _random_parts(sizes_G: Parts, shares: Sequence[float], generator: np.random.Generator) -> Parts:
    """Groups in random order fill the parts one after the other; the first ones make no part empty."""
    order = generator.permutation(len(sizes_G))
    middles = np.cumsum(sizes_G[order]) - sizes_G[order] / 2
    parts = np.searchsorted(np.cumsum(shares)[:-1] * sizes_G.sum(), middles, side="right")
    parts[: len(shares)] = np.arange(len(shares))
    return parts[np.argsort(order)]


def _deviation(parts_G: Parts, counts_GC: npt.NDArray[np.int64], shares: Sequence[float]) -> float:
    sums_PC = np.eye(len(shares))[parts_G].T @ counts_GC
    deviation_PC = sums_PC / np.maximum(1, counts_GC.sum(axis=0)) - np.array(shares)[:, None]
    return float(np.abs(deviation_PC[:, counts_GC.any(axis=0)]).sum())


def _counts(groups_N: Labels, labels_N: Labels) -> npt.NDArray[np.int64]:
    classes = int(labels_N.max(initial=0)) + 1
    flat = np.bincount(groups_N * classes + labels_N, minlength=(int(groups_N.max(initial=-1)) + 1) * classes)
    return flat.reshape(-1, classes)


def _split_of_class(
    name: str, keys: Sequence[str], settings: DrawnSplits, where: object
) -> dict[str, list[str]]:
    tests = _test_part(ranked_keys(keys, f"{settings.seed}"), settings)
    rest = [key for key in ranked_keys(keys, _validation_seed(settings)) if key not in tests]
    validations = max(1, round(len(keys) * settings.validation))
    if validations >= len(rest) or not tests:
        raise DataError(
            f"the class '{name}' has too few pictures for three splits",
            where=where,
            got=len(keys),
            expected=f"{max(3, settings.folds, len(keys) + 1)} or more: to train, to choose and to test",
            fix="add pictures, or leave the class out of `classes` in the recipe's [data]",
        )
    return {"test": list(tests), "validation": rest[:validations], "train": rest[validations:]}


def generator_seed(seed: int) -> int:
    """A recipe's seed may be any whole number; generators take none below 0."""
    return seed % 2**64


def ranked_keys(keys: Sequence[str], seed: str) -> list[str]:
    """Ranked by a hash of seed and key, so that one new picture moves hardly any other."""
    return sorted(keys, key=lambda key: hashlib.sha256(f"{seed}\n{key}".encode()).digest())


def _test_part(ranked: list[str], settings: DrawnSplits) -> dict[str, None]:
    if not settings.folds:
        return dict.fromkeys(ranked[: max(1, round(len(ranked) * settings.test))])
    first, end = (len(ranked) * k // settings.folds for k in (settings.fold, settings.fold + 1))
    return dict.fromkeys(ranked[first:end])


def _validation_seed(settings: DrawnSplits) -> str:
    """Each fold draws anew: the folds' choices shall not rest on the same few pictures."""
    return f"{settings.seed}\nfold {settings.fold}" if settings.folds else f"{settings.seed}"


def _join(keys_of_classes: list[list[str]]) -> Split:
    keys = tuple(key for part in keys_of_classes for key in sorted(part))
    labels = np.repeat(np.arange(len(keys_of_classes)), [len(part) for part in keys_of_classes])
    return Split(keys, labels.astype(np.int64))
