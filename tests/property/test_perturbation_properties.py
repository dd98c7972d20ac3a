"""Whatever the picture and its size: a perturbation is seeded, keeps shape and dtype, spares its input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_road.evaluation.perturbations import PERTURBATIONS, perturb
from edge_road.frames import Images

NAMES = sorted(PERTURBATIONS)


def pictures(seed: int, height: int, width: int, count: int = 2) -> Images:
    return np.random.default_rng(seed).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    height=st.integers(16, 150),
    width=st.integers(16, 150),
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


@pytest.mark.parametrize("name", NAMES)
def test_batches_do_not_matter_but_position_and_run_do(name: str) -> None:
    images_NHWC = np.repeat(pictures(1, 64, 80, count=1), 6, axis=0)
    whole = perturb(images_NHWC, name, 5, 2)
    halves = [perturb(images_NHWC[:3], name, 5, 2), perturb(images_NHWC[3:], name, 5, 2, first=3)]
    assert np.array_equal(whole, np.concatenate(halves))
    same_again = np.array_equal(whole, perturb(images_NHWC, name, 5, 3))
    same_for_all = np.array_equal(whole[0], whole[1])
    assert same_again == same_for_all == (not PERTURBATIONS[name].random)
