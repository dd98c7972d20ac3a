"""Alike pictures meet among many others, and the work grows hardly faster than their number."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.training.data_check import duplicates
from edge_road.training.data_check.duplicates import distances, exact_groups, near_groups, near_pairs


def random_prints(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    hashes_N = rng.integers(2**63, size=count, dtype=np.uint64)
    return hashes_N, rng.integers(256, size=(count, 256), dtype=np.uint8)


def flip(value: int, bits: int, rng: np.random.Generator) -> int:
    for bit in rng.choice(63, size=bits, replace=False):
        value ^= 1 << int(bit)
    return value


def test_distances_count_the_different_bits() -> None:
    first = np.array([0, 0b1011, 2**62], dtype=np.uint64)
    second = np.array([0, 0b0001, 1], dtype=np.uint64)
    assert distances(first, second).tolist() == [0, 2, 2]


def test_equal_files_form_groups() -> None:
    assert exact_groups([b"a", b"b", b"a", b"c", b"b", b"a"]) == [[0, 2, 5], [1, 4]]


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4])
def test_nearly_equal_pictures_meet_among_thousands_of_others(bits: int) -> None:
    rng = np.random.default_rng(bits)
    hashes_N, thumbs_NT = random_prints(3000, rng)
    for pair in range(50):
        hashes_N[1000 + pair] = flip(int(hashes_N[pair]), bits, rng)
        thumbs_NT[1000 + pair] = np.clip(thumbs_NT[pair].astype(int) + rng.integers(-4, 5, 256), 0, 255)
    assert [[pair, 1000 + pair] for pair in range(50)] == near_pairs(hashes_N, thumbs_NT).tolist()


def test_a_like_hash_alone_does_not_make_pictures_alike() -> None:
    rng = np.random.default_rng(0)
    hashes_N, thumbs_NT = random_prints(100, rng)
    hashes_N[1] = hashes_N[0]
    assert near_groups(hashes_N, thumbs_NT) == []


def test_likeness_is_handed_on_along_a_chain() -> None:
    rng = np.random.default_rng(0)
    hashes_N, thumbs_NT = random_prints(60, rng)
    hashes_N[[5, 20, 40]] = hashes_N[5]
    thumbs_NT[[5, 20, 40]] = thumbs_NT[5]
    assert near_groups(hashes_N, thumbs_NT) == [[5, 20, 40]]


def test_flat_pictures_are_alike_with_none() -> None:
    assert near_groups(np.zeros(40, np.uint64), np.full((40, 256), 90, np.uint8)) == []


def test_no_pictures_at_all_are_no_trouble() -> None:
    assert near_groups(np.zeros(0, np.uint64), np.zeros((0, 256), np.uint8)) == []


@pytest.mark.parametrize(
    ("equal", "count"), [(False, 2000), (True, 250)], ids=["all different", "all in one cell"]
)
def test_comparisons_grow_with_n_and_not_with_its_square(
    equal: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even when every hash is the same, where comparing each with each would take n * n / 2."""
    compared: list[int] = []

    def counting(first_N: np.ndarray, second_N: np.ndarray) -> np.ndarray:
        compared.append(len(first_N))
        return distances(first_N, second_N)

    monkeypatch.setattr(duplicates, "distances", counting)
    totals = []
    for pictures in (count, 4 * count):
        compared.clear()
        hashes_N, thumbs_NT = random_prints(pictures, np.random.default_rng(0))
        near_pairs(hashes_N * np.uint64(not equal), thumbs_NT)
        totals.append(sum(compared))
    assert totals[1] <= 4 * totals[0] * 1.25  # n log n: 4 * log(8000) / log(2000) = 4 * 1.18
