"""What weather does to the ground, part by part."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from edge_road.synthetic import surfaces
from edge_road.synthetic.camera import Camera, View
from edge_road.synthetic.cover import Cover, blended, random_cover
from edge_road.synthetic.surfaces import Site

GROUND = View(Camera(height_m=1.4, horizon=0.4, focal=0.8), 96, 128).ground()
SHAPE = GROUND.ahead_m.shape
ONES = np.ones(SHAPE, dtype=np.float32)
SITE = Site(GROUND, travel_m=5.0, place=0.3, tracks=ONES * 0, road=ONES, edge=ONES * 0, soil=ONES * 0)
GREY = np.full((3, *SHAPE), 0.4, dtype=np.float32)
SKY = np.full((3, *SHAPE), 0.9, dtype=np.float32)


def test_dry_leaves_the_road_as_it_is() -> None:
    dry = Cover()
    np.testing.assert_array_equal(surfaces.soaked(GREY, dry, SITE), GREY)
    assert not surfaces.snow_mask(dry, SITE).any()
    assert not surfaces.puddle_mask(dry, SITE).any()
    np.testing.assert_allclose(surfaces.mirrored(GREY, dry, SITE, ONES, SKY, SKY), GREY)
    np.testing.assert_array_equal(surfaces.glazed(GREY, dry, SITE, SKY), GREY)


def test_every_field_stays_in_single_precision() -> None:
    """One double among them would silently double the cost of all that follow."""
    cover = Cover(*[0.5] * len(fields(Cover)))
    mask = surfaces.snow_mask(cover, SITE)
    painted = [
        mask,
        surfaces.puddle_mask(cover, SITE),
        surfaces.soaked(GREY, cover, SITE),
        surfaces.snowed(GREY, cover, SITE, mask),
        surfaces.mirrored(GREY, cover, SITE, ONES, SKY, SKY),
        surfaces.glazed(GREY, cover, SITE, SKY),
    ]
    assert {field.dtype for field in painted} == {np.dtype(np.float32)}


def test_water_darkens_and_mirrors_more_towards_the_horizon() -> None:
    wet = Cover(water=1.0)
    assert surfaces.soaked(GREY, wet, SITE).max() < GREY.min()
    black = GREY * 0
    mirrored = surfaces.mirrored(black, wet, SITE, ONES, SKY, SKY).mean(axis=(0, 2))
    assert mirrored[5] > 2 * mirrored[-1]


def test_more_snow_hides_more() -> None:
    hidden = [
        float(surfaces.snow_mask(Cover(snow=amount), SITE).mean()) for amount in (0.0, 0.3, 0.5, 0.7, 1.0)
    ]
    assert hidden == sorted(set(hidden))
    assert hidden[0] == 0
    assert hidden[-1] > 0.95


def test_tyres_clear_the_snow_where_they_roll() -> None:
    rolled = replace(SITE, tracks=ONES)
    rutted = Cover(snow=0.7, ruts=1.0)
    assert surfaces.snow_mask(rutted, rolled).mean() < 0.3 < 0.7 < surfaces.snow_mask(rutted, SITE).mean()


def test_a_white_verge_leaves_the_road_bare() -> None:
    verge = replace(SITE, road=ONES * 0, edge=ONES)
    white_verge = Cover(verge_snow=1.0)
    assert surfaces.snow_mask(white_verge, verge).mean() > 0.9
    assert not surfaces.snow_mask(white_verge, SITE).any()


def test_glaze_is_pale_and_even() -> None:
    iced = surfaces.glazed(GREY, Cover(glaze=1.0), SITE, SKY)
    assert iced.mean() > GREY.mean() * 1.2


def test_a_blend_begins_with_the_one_and_ends_with_the_other() -> None:
    wet, icy = random_cover("wet", np.random.default_rng(1)), random_cover("icy", np.random.default_rng(2))
    for share, expected in ((0.0, wet), (1.0, icy)):
        cover = blended(wet, icy, ONES * np.float32(share))
        for name in ("water", "puddles", "snow", "ruts", "glaze", "verge_snow"):
            np.testing.assert_allclose(getattr(cover, name), getattr(expected, name), atol=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_every_state_has_what_makes_it(seed: int) -> None:
    dry, wet, icy = (random_cover(state, np.random.default_rng(seed)) for state in ("dry", "wet", "icy"))
    assert (dry.water, dry.snow, dry.glaze, dry.puddles) == (0, 0, 0, 0)
    assert wet.water > 0.5
    assert (wet.snow, wet.glaze) == (0, 0)
    assert icy.snow + icy.glaze > 0.45


def test_white_verges_and_bare_ones_happen_in_every_state() -> None:
    for state in ("dry", "wet", "icy"):
        verges = [random_cover(state, np.random.default_rng(seed)).verge_snow > 0 for seed in range(60)]
        assert 0.1 < sum(verges) / len(verges) < 0.85, "a model that looks at the roadside shall fail"
