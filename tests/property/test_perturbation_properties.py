"""Whatever the picture and its size: a perturbation is seeded, keeps shape and dtype, spares its input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_road.evaluation.perturbations import DIALS, FAMILIES, PERTURBATIONS, SUITES, perturb, perturbation
from edge_road.frames import Images
from edge_road.synthetic.scenes import render_scene

ROWS = sorted(PERTURBATIONS)
IDENTITIES = ["gaussian:0", "uniform:0", "salt_pepper:0", "occlusion:0", "stripes:0", "down_up:1", "dark:100"]


def pictures(seed: int, height: int, width: int, count: int = 2) -> Images:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def roads() -> Images:
    states = ("dry", "wet", "icy", "dry", "wet", "icy")
    return np.stack([render_scene(s, np.random.default_rng(i), 96, 128) for i, s in enumerate(states)])


def psnr(clean: Images, damaged: Images) -> float:
    """In decibels, the mean over the pictures."""
    errors = ((clean.astype(float) - damaged) ** 2).mean(axis=(1, 2, 3))
    return float(np.mean(10 * np.log10(255**2 / errors)))


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(SUITES["all"]),
    height=st.integers(32, 120),
    width=st.integers(32, 120),
    seed=st.integers(0, 2**63 - 1),
    run=st.integers(0, 1000),
)
def test_seeded_shape_kept_input_spared(name: str, height: int, width: int, seed: int, run: int) -> None:
    images_NHWC = pictures(seed % 2**32, height, width)
    before = images_NHWC.copy()
    images_NHWC.flags.writeable = False
    first = perturb(images_NHWC, name, seed, run)
    assert first.shape == images_NHWC.shape
    assert first.dtype == np.uint8
    assert np.array_equal(images_NHWC, before)
    assert np.array_equal(first, perturb(images_NHWC, name, seed, run))
    assert not np.array_equal(first, images_NHWC)


@pytest.mark.parametrize("name", [*ROWS, *(f"{family}:3" for family in FAMILIES)])
def test_batches_do_not_matter_but_position_and_run_do(name: str) -> None:
    images_NHWC = np.repeat(pictures(1, 64, 80, count=1), 4, axis=0)
    whole = perturb(images_NHWC, name, 5, 2)
    halves = [perturb(images_NHWC[:2], name, 5, 2), perturb(images_NHWC[2:], name, 5, 2, first=2)]
    assert np.array_equal(whole, np.concatenate(halves))
    same_again = np.array_equal(whole, perturb(images_NHWC, name, 5, 3))
    same_for_all = np.array_equal(whole[0], whole[1])
    assert same_again == same_for_all == (not perturbation(name).random)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_distortion_grows_with_severity(family: str, roads: Images) -> None:
    closeness = [psnr(roads, perturb(roads, name, 0, 0)) for name in FAMILIES[family].names]
    assert all(milder > harder for milder, harder in pairwise(closeness)), closeness


@pytest.mark.parametrize("name", [*(f"{family}:0" for family in FAMILIES), *IDENTITIES])
def test_no_severity_leaves_the_picture_as_it_is(name: str, roads: Images) -> None:
    same = perturb(roads, name, 0, 0)
    assert np.array_equal(same, roads)
    assert not np.shares_memory(same, roads)


def test_every_dial_but_jpeg_has_an_identity() -> None:
    assert {name.partition(":")[0] for name in IDENTITIES} == DIALS.keys() - {"jpeg"}


@pytest.mark.parametrize("colour", [0, 128, 255])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_blank_picture_is_no_trouble(family: str, colour: int) -> None:
    blank = np.full((1, 33, 47, 3), colour, np.uint8)
    with np.errstate(all="raise"):
        assert perturb(blank, f"{family}:5", 0, 0).shape == blank.shape
