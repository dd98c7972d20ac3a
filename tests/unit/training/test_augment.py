"""A view is decided by (seed, epoch, index) alone, and each part of the augmentation does its own thing."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from edge_road.config import settings_digest
from edge_road.frames import Image
from edge_road.recipe import AugmentSettings, Recipe
from edge_road.training.augment import Augmentation, transforms

PLAIN = AugmentSettings(color_jitter=0, rotation_degrees=0, perspective=0, flip=0)


def road() -> Image:
    rows, columns = np.mgrid[0:40, 0:48]
    return np.stack([rows * 5, columns * 4, (rows + columns) % 256], axis=2).astype(np.uint8)


def only(**parts: float) -> AugmentSettings:
    return AugmentSettings.model_validate({**PLAIN.model_dump(), **parts})


def views(settings: AugmentSettings, count: int = 200) -> list[Image]:
    augmentation = Augmentation(settings, seed=0)
    return [augmentation.view(road(), epoch=0, index=i) for i in range(count)]


def test_the_same_seed_epoch_and_index_give_the_same_bytes_in_any_order() -> None:
    first, second = Augmentation(AugmentSettings(), 7), Augmentation(AugmentSettings(), 7)
    forwards = {i: first.view(road(), 3, i) for i in range(20)}
    backwards = {i: second.view(road(), 3, i) for i in reversed(range(20))}
    for i in range(20):
        np.testing.assert_array_equal(forwards[i], backwards[i])


def test_threads_that_share_an_augmentation_do_not_disturb_each_other() -> None:
    augmentation = Augmentation(AugmentSettings(), 7)
    alone = [augmentation.view(road(), 0, i) for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: augmentation.view(road(), 0, i), range(64)))
    for ours, theirs in zip(alone, together):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("seed", "epoch", "index"), [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_another_seed_epoch_or_index_gives_another_view(seed: int, epoch: int, index: int) -> None:
    reference = Augmentation(AugmentSettings(), 0).view(road(), 0, 0)
    other = Augmentation(AugmentSettings(), seed).view(road(), epoch, index)
    assert not np.array_equal(reference, other)


def test_views_keep_size_and_type_and_leave_the_picture_alone() -> None:
    picture = road()
    view = Augmentation(AugmentSettings(), 0).view(picture, 0, 0)
    assert (view.shape, view.dtype) == (picture.shape, np.uint8)
    np.testing.assert_array_equal(picture, road())


def test_a_part_set_to_zero_is_left_out() -> None:
    assert transforms(PLAIN) == []
    np.testing.assert_array_equal(views(PLAIN, 1)[0], road())


def test_flips_mirror_half_of_the_pictures() -> None:
    flipped = [bool((view == road()[:, ::-1]).all()) for view in views(only(flip=0.5))]
    assert all(flip or (view == road()).all() for flip, view in zip(flipped, views(only(flip=0.5))))
    assert 70 < sum(flipped) < 130


def test_perspective_comes_with_its_probability() -> None:
    changed = sum(not np.array_equal(view, road()) for view in views(only(perspective=0.5)))
    assert 70 < changed < 130


def test_flip_and_perspective_are_drawn_independently() -> None:
    """One seed for every transform would make each flip come with a perspective."""
    both = AugmentSettings(color_jitter=0, rotation_degrees=0, perspective=0.5, flip=0.5)
    flipped = [bool((view == road()[:, ::-1]).all()) for view in views(both)]
    untouched = [bool((view == road()).all()) for view in views(both)]
    assert 25 < sum(flipped) < 80
    assert 25 < sum(untouched) < 80


@pytest.mark.parametrize(("corners", "mode"), [("black", "constant"), ("filled", "reflect")])
def test_a_padded_crop_is_any_cut_of_the_padded_picture(corners: str, mode: Any) -> None:
    padded = np.pad(road(), ((2, 2), (2, 2), (0, 0)), mode)
    cuts = {padded[y : y + 40, x : x + 48].tobytes() for y in range(5) for x in range(5)}
    assert len(cuts) == 25
    settings = only(padded_crop=2).model_copy(update={"corners": corners})
    assert {view.tobytes() for view in views(settings, 400)} == cuts


def test_what_is_not_asked_for_leaves_the_digest_of_older_recipes() -> None:
    assert "padded_crop" not in Recipe(name="a").model_dump()["augment"]
    assert "stem" not in Recipe(name="a").model_dump()["model"]
    assert settings_digest(Recipe(name="a", augment=only(padded_crop=4))) != settings_digest(
        Recipe(name="a", augment=PLAIN)
    )


def test_colour_jitter_changes_brightness_but_not_the_hue_of_grey() -> None:
    grey = np.full((8, 8, 3), 100, np.uint8)
    augmentation = Augmentation(only(color_jitter=0.3), 0)
    jittered = np.array([augmentation.view(grey, 0, i) for i in range(100)])
    assert (jittered == jittered[..., :1]).all()
    assert 69 <= jittered.min() < 80
    assert 120 < jittered.max() <= 131


def test_rotation_stays_within_its_limit() -> None:
    white = np.full((32, 32, 3), 255, np.uint8)
    white[:, 16:] = 200
    augmentation = Augmentation(only(rotation_degrees=10), 0)
    for i in range(50):
        view = augmentation.view(white, 0, i)
        top, bottom = ((row[4:-4] > 228).sum() / 3 for row in (view[6], view[25]))
        assert abs(top - bottom) <= 19 * np.tan(np.radians(10.5)) + 2


def test_filled_corners_are_never_black() -> None:
    white = np.full((32, 32, 3), 255, np.uint8)
    settings = only(rotation_degrees=10, perspective=0.5).model_copy(update={"corners": "filled"})
    augmentation = Augmentation(settings, 0)
    assert min(augmentation.view(white, 0, i).min() for i in range(50)) == 255


@pytest.mark.parametrize("part", ["rotation_degrees", "perspective"])
def test_the_whole_picture_stays_and_corners_become_black(part: str) -> None:
    framed = np.full((64, 64, 3), 100, np.uint8)
    framed[:8] = framed[-8:] = framed[:, :8] = framed[:, -8:] = 255
    augmentation = Augmentation(only(**{part: 10 if part == "rotation_degrees" else 0.5}), 0)
    changed = [view for i in range(50) if not np.array_equal(view := augmentation.view(framed, 0, i), framed)]
    darkest = [min(view[y, x].max() for y in (0, -1) for x in (0, -1)) for view in changed]
    assert np.median(darkest) == 0
    for view in changed:
        middle = [view[32], view[:, 32]]
        assert all(line[:20].max() > 150 and line[-20:].max() > 150 for line in middle)


def test_erasing_hides_one_rectangle_of_as_many_pictures_as_asked_for() -> None:
    white = np.full((40, 60, 3), 255, np.uint8)
    augmentation = Augmentation(only(erase=0.5), 0)
    hidden = [(augmentation.view(white, 0, i) == 0).all(axis=2) for i in range(200)]
    rectangles = [black_HW for black_HW in hidden if black_HW.any()]
    assert 70 < len(rectangles) < 130
    for black_HW in rectangles:
        assert black_HW.sum() == black_HW.any(axis=1).sum() * black_HW.any(axis=0).sum()
        assert 0.01 < black_HW.mean() < 0.34


def test_importing_it_asks_no_server_for_updates() -> None:
    refuse = "import socket; socket.socket.connect = lambda *a: exit('it called home'); "
    code = refuse + "import edge_road.training.augment"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
