from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from edge_road.preprocess import Crop, Preprocessing

SIDES = st.integers(1, 300)


SIZES = st.integers(16, 120)
FITS, SHRINKS = st.sampled_from(["stretch", "cover"]), st.sampled_from(["area", "halves"])


@given(SIDES, SIDES, SIZES, SIZES, FITS, SHRINKS)
def test_any_picture_becomes_the_models_size(height, width, to_height, to_width, fit, shrink) -> None:  # type: ignore[no-untyped-def]
    image = np.full((height, width, 3), 77, np.uint8)
    out = Preprocessing(height=to_height, width=to_width, fit=fit, shrink=shrink).prepare(image)
    assert out.shape == (to_height, to_width, 3)
    assert out.dtype == np.uint8
    assert (out == 77).all()


def test_crop_is_in_shares_of_the_picture() -> None:
    image = np.zeros((100, 200, 3), np.uint8)
    image[50:, 100:] = 255
    out = Preprocessing(height=16, width=16, crop=Crop(left=0.5, top=0.5)).prepare(image)
    assert (out == 255).all()


def test_cover_keeps_proportions_by_cutting_the_centre() -> None:
    image = np.zeros((100, 300, 3), np.uint8)
    image[:, 100:200] = 255
    assert (Preprocessing(height=50, width=50, fit="cover").prepare(image) == 255).all()


def test_a_region_replaces_the_models_own_crop() -> None:
    image = np.zeros((64, 64, 3), np.uint8)
    image[:32] = 200
    model = Preprocessing(height=32, width=32, crop=Crop(top=0.5))
    assert (model.prepare(image) == 0).all()
    assert (model.prepare(image, crop=Crop(bottom=0.5)) == 200).all()


def test_shrinking_averages_and_does_not_alias() -> None:
    checkers = np.indices((64, 64)).sum(axis=0) % 2 * 255
    image = np.repeat(checkers[..., None], 3, axis=2).astype(np.uint8)
    out = Preprocessing(height=16, width=16).prepare(image)
    assert np.abs(out.astype(int) - 127).max() <= 1


def test_halves_are_means_of_two_by_two_until_the_rest_is_less_than_two() -> None:
    image = np.random.default_rng(0).integers(0, 256, (80, 96, 3), dtype=np.uint8)
    quarter = image.reshape(20, 4, 24, 4, 3).astype(float).mean(axis=(1, 3))
    out = Preprocessing(height=20, width=24, shrink="halves").prepare(image)
    assert np.abs(out - quarter).max() <= 1  # rounded twice
    rest = Preprocessing(height=16, width=20).prepare(out)
    assert (Preprocessing(height=16, width=20, shrink="halves").prepare(image) == rest).all()


def test_a_picture_less_than_twice_as_large_is_not_halved() -> None:
    image = np.random.default_rng(0).integers(0, 256, (60, 31, 3), dtype=np.uint8)
    in_halves, at_once = (Preprocessing(height=16, width=16, shrink=how) for how in ("halves", "area"))
    assert (in_halves.prepare(image) == at_once.prepare(image)).all()


def test_a_bundle_from_before_halves_shrinks_in_one_step_and_keeps_its_bytes() -> None:
    before = {"height": 16, "width": 16, "fit": "stretch"}
    settings = Preprocessing.model_validate(before)
    assert settings.shrink == "area"
    assert "shrink" not in settings.model_dump()
    assert settings.model_copy(update={"shrink": "halves"}).model_dump()["shrink"] == "halves"


@pytest.mark.parametrize("crop", [{"left": 0.5, "right": 0.5}, {"top": 1.2}, {"left": -0.1}])
def test_empty_or_outside_crop_is_refused(crop: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Crop(**crop)
