"""The perturbations have the sizes and strengths of robust_discriminative_noise, section 7."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import PERTURBATIONS, SUITES, expand, paper, perturb, perturbation
from edge_road.synthetic.scenes import render_scene

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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fgo:3", "did you mean 'fog:3'"),
        ("fog", "for example fog:3"),
        ("fog:6", "1 to 5"),
        ("fog:two", "1 to 5"),
        ("gaussian:300", "a number from 0 to 255"),
        ("gaussian:nan", "a number from 0 to 255"),
        ("jpeg:7.5", "a whole number from 1 to 100"),
        ("stripes:", "a whole number"),
    ],
)
def test_a_wrong_severity_or_value_is_refused_with_the_right_ones(name: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        perturbation(name)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("dialled", "row"),
    [
        ("gaussian:40", "gaussian_40"),
        ("jpeg:10", "jpeg"),
        ("dark:30.0", "dark"),
        ("occlusion:20", "occlusion"),
    ],
)
def test_a_dial_at_the_value_of_a_row_is_that_row(dialled: str, row: str) -> None:
    assert perturbation(dialled) is PERTURBATIONS[row]


def test_a_dial_has_its_value() -> None:
    noise = perturb(GREY, "gaussian:25", 0, 0).astype(float) - 128
    assert noise.std() == pytest.approx(25, rel=0.01)
    uniform = perturb(GREY, "uniform:30", 0, 0).astype(int) - 128
    assert (uniform.min(), uniform.max()) == (-30, 30)
    assert perturb(GREY, "dark:50", 0, 0).max() == 64
    assert (perturb(GREY, "salt_pepper:20", 0, 0)[..., 0] != 128).mean() == pytest.approx(0.2, abs=0.01)


def test_the_suites_are_what_they_are_called() -> None:
    assert SUITES["default"] == tuple(PERTURBATIONS)
    assert set(SUITES["paper"]) < set(PERTURBATIONS)
    assert len(SUITES["paper"]) == 10
    assert len(SUITES["common"]) == 15 * 5
    assert len(SUITES["road"]) == 10 * 5
    assert set().union(*SUITES.values()) == set(SUITES["all"])


def test_a_suite_and_a_member_of_it_make_each_row_once() -> None:
    names = expand(["gaussian:40", "paper", "fog:2", "fog:2"])
    assert names == ["gaussian_40", *(n for n in SUITES["paper"] if n != "gaussian_40"), "fog:2"]
    with pytest.raises(ConfigError, match="no such perturbation"):
        expand(["papers"])


def test_severities_of_a_family_see_the_same_draws() -> None:
    mild, hard = (
        perturb(GREY, f"gaussian_noise:{severity}", 0, 0).astype(float) - 128 for severity in (1, 2)
    )
    assert np.corrcoef(mild.ravel(), hard.ravel())[0, 1] > 0.99


def test_common_noise_has_its_published_strength() -> None:
    """Hendrycks and Dietterich: sigma 0.08 at severity 1; 60 photons make white; 27 % of the values."""
    gaussian, shot, impulse = (
        perturb(GREY, name, 0, 0).astype(float)
        for name in ("gaussian_noise:1", "shot_noise:1", "impulse_noise:5")
    )
    assert gaussian.std() == pytest.approx(0.08 * 255, rel=0.01)
    assert shot.std() == pytest.approx(255 * (128 / 255 / 60) ** 0.5, rel=0.01)
    assert (impulse != 128).mean() == pytest.approx(0.27, abs=0.005)


def test_driving_blur_spares_the_vanishing_point_and_smears_the_rim() -> None:
    noise = np.random.default_rng(3).normal(128, 600, (160, 200, 3))
    picture = cv2.GaussianBlur(noise, (0, 0), 2.5).clip(0, 255).astype(np.uint8)
    change = np.abs(perturb(picture[None], "driving_blur:3", 0, 0)[0].astype(float) - picture).mean(axis=2)
    around = cv2.blur(change, (15, 15))
    row, column = np.unravel_index(around.argmin(), around.shape)
    assert abs(row / 160 - 0.45) < 0.1
    assert abs(column / 200 - 0.5) < 0.12
    assert around.min() < 0.3 * change[:, -20:].mean()


def test_rolling_bands_darken_whole_rows() -> None:
    banded = perturb(GREY, "bands:4", 0, 0)[0].astype(int)
    assert (banded == banded[:, :1]).all()
    assert (banded.min(), banded.max()) == (pytest.approx(128 * 0.4, abs=1), 128)


def test_a_low_sun_only_adds_light_where_it_stands_and_dirt_hides_what_is_behind() -> None:
    sun = perturb(GREY, "low_sun:5", 0, 0)
    assert (sun[0].min(axis=2) == 255).mean() > 0.02
    picture = np.random.default_rng(4).integers(0, 256, (1, 160, 200, 3), dtype=np.uint8)
    muddy = perturb(picture, "dirt:5", 0, 0)[0].astype(float)
    spread = cv2.blur(muddy**2, (9, 9)) - cv2.blur(muddy, (9, 9)) ** 2
    assert (spread.mean(axis=2) < 200).mean() > 0.3


def test_a_picture_keeps_its_look_when_it_is_larger() -> None:
    """Lengths grow with the picture, so that a severity means the same at every model size."""
    small = cv2.resize(
        render_scene("wet", np.random.default_rng(0), 448, 448), (224, 224), interpolation=cv2.INTER_AREA
    )
    large = cv2.resize(small, (448, 448), interpolation=cv2.INTER_CUBIC)
    for name in ("defocus_blur:4", "driving_blur:4", "zoom_blur:3"):
        shrunk = cv2.resize(perturb(large[None], name, 0, 0)[0], (224, 224), interpolation=cv2.INTER_AREA)
        assert np.abs(shrunk.astype(float) - perturb(small[None], name, 0, 0)[0]).mean() < 2, name


def test_h264_survives_odd_sizes_and_keeps_colours() -> None:
    red = np.zeros((1, 47, 61, 3), np.uint8)
    red[..., 0] = 200
    coded = perturb(red, "h264:3", 0, 0)
    assert coded.shape == red.shape
    assert np.abs(coded[0].mean(axis=(0, 1)) - [200, 0, 0]).max() < 12
