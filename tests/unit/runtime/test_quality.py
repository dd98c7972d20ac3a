from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edge_road.frames import Frame, Image
from edge_road.runtime.quality import Look, QualitySettings, Seen, check, look_at

SETTINGS = QualitySettings()
SECOND = 10**9


def picture(
    level: float = 110, spread: float = 30, size: tuple[int, int] = (96, 128), seed: int = 0
) -> Image:
    noise = np.random.default_rng(seed).normal(level, spread, (*size, 3))
    return np.clip(noise, 0, 255).astype(np.uint8)


def problems_of(*pictures: Image, period_s: float = 0.1) -> list[tuple[str, ...]]:
    seen, found = Seen(), []
    for number, pixels in enumerate(pictures):
        frame = Frame(pixels, number, round((1 + number * period_s) * SECOND))
        seen, problems = check(seen, look_at(frame, SETTINGS), SETTINGS)
        found.append(problems)
    return found


def test_an_ordinary_picture_has_no_problem() -> None:
    assert problems_of(picture()) == [()]


@pytest.mark.parametrize(
    ("pixels", "problem"),
    [
        (picture(level=0, spread=4), "exposure"),
        (picture(level=255, spread=2), "exposure"),
        (picture(level=120, spread=0), "low_detail"),
        (np.zeros((96, 128, 3), np.uint8), "exposure"),
        (np.full((96, 128, 3), 255, np.uint8), "exposure"),
        (np.full((96, 128, 3), 128, np.uint8), "low_detail"),  # what decoders fill a cut JPEG with
    ],
)
def test_a_picture_without_content_is_named(pixels: Image, problem: str) -> None:
    assert problem in problems_of(pixels)[0]


def test_a_bright_snow_scene_and_a_night_scene_are_still_judged() -> None:
    snow = picture(level=225, spread=25)
    night = picture(level=25, spread=15)
    assert problems_of(snow) == problems_of(night) == [()]


def test_a_frozen_camera_is_noticed_within_two_seconds() -> None:
    found = problems_of(*[picture()] * 20, period_s=0.1)
    first = found.index(("frozen",))
    assert first == 10  # ten identical frames before it, and one second
    assert found[first:] == [("frozen",)] * 10


def test_few_identical_frames_are_not_frozen_however_long_they_take() -> None:
    assert problems_of(*[picture()] * 9, period_s=0.5) == [()] * 9


def test_many_identical_frames_in_a_short_time_are_not_frozen() -> None:
    assert problems_of(*[picture()] * 20, period_s=0.01) == [()] * 20


def test_one_different_frame_ends_the_count() -> None:
    pictures = [picture()] * 9 + [picture(seed=1)] + [picture()] * 9
    assert problems_of(*pictures) == [()] * 19


def test_a_single_changed_pixel_in_a_looked_at_row_is_a_different_picture() -> None:
    changed = picture()
    changed[48, 64, 2] ^= 1
    pictures = [picture(), changed] * 10
    assert problems_of(*pictures) == [()] * 20


def test_a_new_size_is_a_problem_until_it_has_lasted_a_second() -> None:
    large = [picture(seed=n) for n in range(3)]
    small = [picture(seed=n, size=(48, 64)) for n in range(12)]
    found = problems_of(*large, *small, period_s=0.1)
    assert found == [()] * 3 + [("frame_size",)] * 10 + [()] * 2


def test_a_size_that_flickers_is_never_accepted_and_the_old_one_stays() -> None:
    seen, found = Seen(), []
    sizes = [(96, 128)] + [(48, 64), (24, 32)] * 15 + [(96, 128)]
    for number, size in enumerate(sizes):
        frame = Frame(picture(size=size, seed=number), number, round(number * 0.1 * SECOND))
        seen, problems = check(seen, look_at(frame, SETTINGS), SETTINGS)
        found.append(problems)
    assert found == [(), *[("frame_size",)] * 30, ()]


@pytest.mark.parametrize("step_ns", [0, -1, -SECOND])
def test_repeated_and_backward_time_stamps_are_refused_and_not_remembered(step_ns: int) -> None:
    look = Look(5 * SECOND, (96, 128), dark=0.0, bright=0.0, detail=9.0, fingerprint=1)
    seen, _ = check(Seen(), look, SETTINGS)
    again, problems = check(seen, replace(look, captured_mono_ns=5 * SECOND + step_ns), SETTINGS)
    assert problems == ("timestamp",)
    assert again == seen


def test_several_problems_are_all_named() -> None:
    found = problems_of(*[np.zeros((96, 128, 3), np.uint8)] * 12)
    assert found[-1] == ("exposure", "low_detail", "frozen")


def test_limits_themselves_belong_to_the_bad_side() -> None:
    at_limit = Look(1, (96, 128), dark=SETTINGS.clipped_share, bright=0.0, detail=9.0, fingerprint=1)
    assert check(Seen(), at_limit, SETTINGS)[1] == ("exposure",)
    assert check(Seen(), replace(at_limit, dark=0.96), SETTINGS)[1] == ()
    barely = replace(at_limit, dark=0.0, detail=SETTINGS.least_detail)
    assert check(Seen(), barely, SETTINGS)[1] == ()
    assert check(Seen(), replace(barely, detail=0.59), SETTINGS)[1] == ("low_detail",)


def test_real_road_pictures_have_no_problem(shared_data) -> None:  # type: ignore[no-untyped-def]
    from edge_road.datasets.decode import read_image

    paths = sorted(p for p in (shared_data / "road3").rglob("*.*") if p.suffix in (".jpg", ".jpeg", ".png"))
    found = [check(Seen(), look_at(Frame(read_image(p), 0, 1), SETTINGS), SETTINGS)[1] for p in paths[::15]]
    assert len(found) > 20
    assert not [problems for problems in found if problems]
