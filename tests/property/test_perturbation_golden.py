"""The pixels of every perturbation are those of the day it was made, and as strong as the public ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from golden_perturbations import CODED, GOLDEN_FILE, digest, picture
from public_corruptions import PUBLIC_FILE, ours

from edge_road.evaluation.perturbations import SUITES, perturb

GOLDEN: dict[str, str] = json.loads(GOLDEN_FILE.read_text())
PUBLIC: dict[str, list[float]] = json.loads(PUBLIC_FILE.read_text())
PSNR_BANDS_DB = {
    "jpeg": 20.9,
    "jpeg_compression:1": 21.6,
    "jpeg_compression:2": 21.4,
    "jpeg_compression:3": 21.2,
    "jpeg_compression:4": 20.9,
    "jpeg_compression:5": 20.1,
    "h264:1": 23.7,
    "h264:2": 22.5,
    "h264:3": 21.2,
    "h264:4": 20.5,
    "h264:5": 19.8,
}


def test_every_perturbation_has_its_digest_or_its_band() -> None:
    coded = {name for name in SUITES["all"] if name.startswith(CODED)}
    assert set(SUITES["all"]) == GOLDEN.keys() | coded
    assert coded == PSNR_BANDS_DB.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_pixels_have_not_drifted(name: str) -> None:
    assert digest(name) == GOLDEN[name]


@pytest.mark.parametrize(("name", "middle"), PSNR_BANDS_DB.items())
def test_coded_pictures_stay_within_a_decibel(name: str, middle: float) -> None:
    error = (picture().astype(float) - perturb(picture(), name, seed=7, run=3)) ** 2
    assert 10 * np.log10(255**2 / error.mean()) == pytest.approx(middle, abs=1.0)


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - {"frost"}))
def test_all_but_our_drawn_frost_is_as_strong_as_in_the_public_package(name: str) -> None:
    assert ours(name) == pytest.approx(PUBLIC[name], rel=0.1)
