"""The perturbations have the sizes and strengths of robust_discriminative_noise, section 7."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import PERTURBATIONS, paper, perturb, perturbation

GREY = np.full((1, 400, 500, 3), 128, np.uint8)


def masked(images: np.ndarray) -> np.ndarray:
    return (images[0] == 0).all(axis=2)


def test_the_table_of_the_paper_is_complete() -> None:
    paper = {"gaussian_10", "gaussian_30", "gaussian_40", "gaussian_60", "occlusion", "occlusion+gaussian_40"}
    paper |= {"down_up", "down_up+occlusion", "stripes", "down_up+stripes"}
    assert paper <= PERTURBATIONS.keys()
    assert all(name == p.name for name, p in PERTURBATIONS.items())


@pytest.mark.parametrize("sigma", [10, 30])
def test_gaussian_noise_has_its_deviation(sigma: int) -> None:
    noise = perturb(GREY, f"gaussian_{sigma}", 0, 0).astype(float) - 128
    assert noise.std() == pytest.approx(sigma, rel=0.01)
    assert abs(noise.mean()) < 0.1


def test_noise_saturates_instead_of_wrapping_round() -> None:
    white, black = np.full_like(GREY, 255), np.zeros_like(GREY)
    assert (perturb(white, "gaussian_10", 0, 0) == 255).mean() == pytest.approx(0.52, abs=0.01)
    assert perturb(white, "gaussian_10", 0, 0).min() > 190
    assert perturb(black, "gaussian_10", 0, 0).max() < 65


def test_one_patch_is_70_by_70_at_the_papers_size_and_scales_with_the_picture() -> None:
    rng = np.random.default_rng(0)
    for height, width, expected in ((400, 500, (70, 70)), (200, 250, (35, 35)), (192, 192, (34, 27))):
        picture = np.full((height, width, 3), 128, np.uint8)
        patch = paper.occlusion(picture, rng, patches=1)[..., 0] == 0
        assert (patch.any(axis=1).sum(), patch.any(axis=0).sum()) == expected
        assert patch.sum() == expected[0] * expected[1]


def test_twenty_patches_hide_between_a_quarter_and_a_half() -> None:
    """20 * 70 * 70 is 49 % of 400 x 500; overlaps take some of it back."""
    shares = [masked(perturb(GREY, "occlusion", 0, run)).mean() for run in range(20)]
    assert all(0.25 < share < 0.49 for share in shares)


def test_stripes_run_from_top_to_bottom_and_are_six_wide() -> None:
    stripe = paper.stripes(GREY[0], np.random.default_rng(1), count=1)[..., 0] == 0
    assert stripe.all(axis=0).sum() == 6 == stripe.any(axis=0).sum()
    ten = masked(perturb(GREY, "stripes", 0, 0))
    assert 30 < ten.all(axis=0).sum() <= 60


def test_down_up_keeps_what_is_coarse_and_loses_what_is_fine() -> None:
    fine = np.zeros((1, 60, 60, 3), np.uint8)
    fine[:, :, ::2] = 255
    assert perturb(fine, "down_up", 0, 0).std() < 50 < fine.std()
    assert np.array_equal(perturb(GREY, "down_up", 0, 0), GREY)


def test_a_combination_acts_in_the_order_of_its_name() -> None:
    """Noise falls on the masks too; a mask laid over a coarse picture has sharp edges."""
    noisy = perturb(GREY, "occlusion+gaussian_40", 0, 0)
    assert not masked(noisy).sum() > 0.2 * masked(perturb(GREY, "occlusion", 0, 0)).sum()
    coarse = perturb(GREY, "down_up+stripes", 0, 0)
    assert set(np.unique(coarse)) == {0, 128}


def test_motion_blur_keeps_the_light_and_dark_takes_it() -> None:
    picture = np.random.default_rng(2).integers(0, 256, (1, 100, 100, 3), dtype=np.uint8)
    blurred = perturb(picture, "motion_blur", 0, 0)
    assert blurred.mean() == pytest.approx(picture.mean(), abs=2)
    assert blurred.std() < 0.7 * picture.std()
    assert perturb(GREY, "dark", 0, 0).max() == round(128 * 0.3)


def test_salt_and_pepper_hits_one_pixel_in_twenty_and_no_other() -> None:
    spotted = perturb(GREY, "salt_pepper", 0, 0)
    assert set(np.unique(spotted)) == {0, 128, 255}
    assert (spotted[..., 0] != 128).mean() == pytest.approx(0.05, abs=0.003)


def test_jpeg_keeps_red_red() -> None:
    red = np.zeros((1, 32, 32, 3), np.uint8)
    red[..., 0] = 200
    assert np.abs(perturb(red, "jpeg", 0, 0)[0].mean(axis=(0, 1)) - [200, 0, 0]).max() < 12


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gaussian_40'"):
        perturbation("gausian_40")
