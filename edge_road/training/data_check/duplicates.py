"""Equal and nearly equal pictures among many, without comparing each with each.

Locality-sensitive hashing by bit sampling (Indyk and Motwani 1998): pictures meet in a table when a
few drawn bits of their perceptual hashes agree. The number of bits grows with log2 of the number of
pictures, so that the tables' cells stay small (up to 16 bits: more would part likely pairs), and a
picture is compared with a bounded number of neighbours in its cell: n log n in all. Who met is then
compared by thumbnail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from edge_road.datasets.index import SPLITS, Labels
from edge_road.training.data_check.findings import Finding

TABLES = 24
LARGEST_DISTANCE = 10
"""of 63 bits"""
SMALLEST_CORRELATION = 0.985
_MOST_NEIGHBOURS = 32
_FEWEST_AND_MOST_BITS = (10, 16)
_FLAT_STD = 2.0
_CHUNK = 100_000
_BITS_OF_BYTE = np.array([bin(value).count("1") for value in range(256)], dtype=np.uint8)

Positions = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


def exact_groups(digests: Sequence[bytes]) -> list[list[int]]:
    """Positions of files with the same bytes, two or more a group."""
    groups: dict[bytes, list[int]] = {}
    for position, digest in enumerate(digests):
        groups.setdefault(digest, []).append(position)
    return [group for group in groups.values() if len(group) > 1]


def near_groups(hashes_N: Hashes, thumbs_NT: npt.NDArray[np.uint8], seed: int = 0) -> list[list[int]]:
    """Positions of pictures that look alike; likeness is handed on from one to the next."""
    pairs = near_pairs(hashes_N, thumbs_NT, seed)
    parent = np.arange(len(hashes_N))
    for first, second in pairs:
        low, high = sorted((_root(parent, int(first)), _root(parent, int(second))))
        parent[high] = low
    groups: dict[int, list[int]] = {}
    for position in np.unique(pairs):
        groups.setdefault(_root(parent, int(position)), []).append(int(position))
    return list(groups.values())


def near_pairs(hashes_N: Hashes, thumbs_NT: npt.NDArray[np.uint8], seed: int = 0) -> Positions:
    """Positions (first, second) of two pictures that look alike; flat ones look like none."""
    shown = np.flatnonzero(_spreads(thumbs_NT) > _FLAT_STD)
    codes = np.zeros(0, dtype=np.int64)
    for met in _meetings(hashes_N[shown], np.random.default_rng(seed)):
        codes = np.union1d(codes, met[:, 0] * len(shown) + met[:, 1])
    pairs: Positions = shown[np.stack(np.divmod(codes, max(1, len(shown))), axis=1)]
    return pairs[_alike(thumbs_NT, pairs)]


def _spreads(thumbs_NT: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Standard deviations, a part at a time: as floats all thumbnails would be gigabytes."""
    parts = np.array_split(thumbs_NT, 1 + len(thumbs_NT) // _CHUNK)
    return np.concatenate([part.astype(np.float32).std(axis=1) for part in parts])


def duplicate_findings(
    groups: Sequence[Sequence[int]], keys: Sequence[str], labels_N: Labels, splits_N: Labels, *, near: bool
) -> list[Finding]:
    """Each member beside the group's first, training pictures coming first."""
    findings = []
    for group in groups:
        first, *others = sorted(group, key=lambda position: (splits_N[position], keys[position]))
        for position in others:
            kind = _kind(labels_N[position] == labels_N[first], splits_N[position] == splits_N[first], near)
            reason = f"{'looks like' if near else 'the same bytes as'} {keys[first]}"
            reason += _places(SPLITS[splits_N[position]], SPLITS[splits_N[first]])
            reason += "" if labels_N[position] == labels_N[first] else "; their labels differ"
            findings.append(Finding(kind, keys[position], reason, keys[first]))
    return findings


def _kind(same_label: bool, same_split: bool, near: bool) -> str:
    if not same_label and not near:
        return "label_conflict"
    if not same_split:
        return "near_leak" if near else "leak"
    return "near_duplicate" if near else "duplicate"


def _places(here: str, there: str) -> str:
    return f", both in {here}" if here == there else f": one in {here}, one in {there}"


def _meetings(hashes_N: Hashes, generator: np.random.Generator) -> Iterator[Positions]:
    bits = int(np.clip(np.ceil(np.log2(len(hashes_N) + 1)), *_FEWEST_AND_MOST_BITS))
    for _ in range(TABLES):
        drawn = generator.choice(63, size=bits, replace=False)
        mask = np.bitwise_or.reduce(np.uint64(1) << drawn.astype(np.uint64))
        cells_N = hashes_N & mask
        order = np.lexsort((hashes_N, cells_N))
        yield _neighbours(cells_N[order], hashes_N[order], order)


def _neighbours(cells_N: Hashes, hashes_N: Hashes, order: Positions) -> Positions:
    """Pairs of one cell, at most `_MOST_NEIGHBOURS` apart in the order of their hashes."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    starts = np.arange(len(cells_N))
    for apart in range(1, _MOST_NEIGHBOURS + 1):
        starts = starts[starts + apart < len(cells_N)]
        starts = starts[cells_N[starts] == cells_N[starts + apart]]
        if not len(starts):
            break
        near = starts[distances(hashes_N[starts], hashes_N[starts + apart]) <= LARGEST_DISTANCE]
        found.append(np.sort(np.stack((order[near], order[near + apart]), axis=1), axis=1))
    return np.concatenate(found)


def distances(first_N: Hashes, second_N: Hashes) -> npt.NDArray[np.int64]:
    """How many bits differ."""
    different = (first_N ^ second_N).view(np.uint8).reshape(-1, 8)
    return np.asarray(_BITS_OF_BYTE[different].sum(axis=1), dtype=np.int64)


def _alike(thumbs_NT: npt.NDArray[np.uint8], pairs_M2: Positions) -> npt.NDArray[np.bool_]:
    parts = [
        _correlation(thumbs_NT[pairs[:, 0]], thumbs_NT[pairs[:, 1]]) >= SMALLEST_CORRELATION
        for pairs in np.array_split(pairs_M2, 1 + len(pairs_M2) // _CHUNK)
    ]
    return np.concatenate(parts)


def _correlation(
    first_MT: npt.NDArray[np.uint8], second_MT: npt.NDArray[np.uint8]
) -> npt.NDArray[np.float32]:
    """Of brightness over the thumbnail."""
    first, second = (_standardised(thumbs.astype(np.float32)) for thumbs in (first_MT, second_MT))
    return np.asarray((first * second).mean(axis=1), dtype=np.float32)


def _standardised(thumbs_MT: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    centred = thumbs_MT - thumbs_MT.mean(axis=1, keepdims=True)
    return np.asarray(centred / thumbs_MT.std(axis=1, keepdims=True), dtype=np.float32)


def _root(parent: Positions, position: int) -> int:
    while parent[position] != position:
        parent[position] = parent[parent[position]]
        position = int(parent[position])
    return position
