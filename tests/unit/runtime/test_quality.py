from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from edge_road.frames import Frame, Image
from edge_road.preprocess import Crop
from edge_road.runtime.look import look_at
from edge_road.runtime.quality import Look, QualitySettings, Seen, Verdict, check
from edge_road.synthetic.drives import random_drive

SETTINGS = QualitySettings()
SECOND = 10**9
GOOD = Look(
    5 * SECOND,
    (96, 128),
    dark=0.0,
    bright=0.0,
    detail=9.0,
    sharpness=0.4,
    structure=5.0,
    fingerprint=(1,) * 72,
)
JUDGED = Crop(top=0.35)


def picture(
    level: float = 110, spread: float = 30, size: tuple[int, int] = (96, 128), seed: int = 0
) -> Image:
    """A grainy surface that is lit from one side."""
    noise = np.random.default_rng(seed).normal(level, spread, (*size, 3))
    light = np.linspace(-spread, spread, size[0])[:, None, None]
    return np.clip(noise + light, 0, 255).astype(np.uint8)


def problems_of(
    *pictures: Image, period_s: float = 0.1, crops: tuple[Crop, ...] = (Crop(),)
) -> list[tuple[str, ...]]:
    seen, found = Seen(), []
    for number, pixels in enumerate(pictures):
        frame = Frame(pixels, number, round((1 + number * period_s) * SECOND))
        seen, verdict = check(seen, look_at(frame, SETTINGS, crops), SETTINGS)
        found.append(verdict.problems)
    return found


def problems(look: Look, seen: Seen | None = None) -> tuple[str, ...]:
    return check(seen or Seen(), look, SETTINGS)[1].problems


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


@pytest.mark.parametrize(
    ("fps", "told_s"), [(30, 1.0), (10, 1.0), (8, 1.125), (6, 1.5), (4, 1.5), (2, 1.5), (1.2, 1.67), (1, 2.0)]
)
def test_a_slow_camera_that_is_frozen_is_told_within_two_seconds_too(fps: float, told_s: float) -> None:
    found = problems_of(*[picture()] * 40, period_s=1 / fps)
    assert found.index(("frozen",)) / fps == pytest.approx(told_s, abs=0.04)


def test_two_equal_pictures_are_not_frozen_however_long_they_take() -> None:
    pictures = [picture(seed=number // 2) for number in range(20)]
    assert problems_of(*pictures, period_s=2.0) == [()] * 20


def test_many_identical_frames_in_a_short_time_are_not_frozen() -> None:
    assert problems_of(*[picture()] * 20, period_s=0.01) == [()] * 20


def test_one_different_frame_ends_the_count() -> None:
    pictures = [picture()] * 10 + [picture(seed=1)] + [picture()] * 10
    assert problems_of(*pictures) == [()] * 21


def test_a_single_changed_pixel_in_a_looked_at_row_changes_its_tile_and_no_other() -> None:
    before = look_at(Frame(picture(), 0, 1), SETTINGS).fingerprint
    assert len(set(before)) == 72
    for row, column, tile in ((0, 0, 0), (48, 64, 6 * 6 + 3), (95, 127, 71)):
        changed = picture()
        changed[row, column, 2] ^= 1
        after = look_at(Frame(changed, 0, 1), SETTINGS).fingerprint
        assert [n for n, (old, new) in enumerate(zip(before, after)) if old != new] == [tile]


def test_bytes_that_only_change_their_places_are_a_different_picture() -> None:
    shifted = np.roll(picture(size=(192, 256)), 8, axis=1), np.roll(picture(size=(192, 256)), 2, axis=0)
    before, *after = (
        look_at(Frame(p, 0, 1), SETTINGS).fingerprint for p in (picture(size=(192, 256)), *shifted)
    )
    assert [sum(old != new for old, new in zip(before, tiles)) for tiles in after] == [72, 72]


@pytest.mark.parametrize("bottom", [12, 90])
def test_a_frozen_camera_whose_clock_goes_on_is_frozen(bottom: int) -> None:
    """Burnt in above the judged part, or within it."""
    pictures = [clock_on(picture(), number, bottom) for number in range(20)]
    assert problems_of(*pictures, crops=(JUDGED,))[10:] == [("frozen",)] * 10
    moving = [clock_on(picture(seed=number), number, bottom) for number in range(20)]
    assert problems_of(*moving, crops=(JUDGED,)) == [()] * 20


def clock_on(pixels: Image, number: int, bottom: int) -> Image:
    result = pixels.copy()
    cv2.putText(result, f"{number:02d}", (10, bottom), cv2.FONT_HERSHEY_SIMPLEX, 0.3, (255, 255, 255))
    return result


def run_of(*changed_tiles: int) -> Seen:
    """So many tiles of each look differ from the first look."""
    seen = Seen()
    for number, count in enumerate(changed_tiles):
        tiles = (1,) * count + (0,) * (20 - count)
        seen, _ = check(seen, replace(GOOD, captured_mono_ns=number + 1, fingerprint=tiles), SETTINGS)
    return seen


def test_a_tenth_of_the_tiles_may_change_in_an_equal_picture() -> None:
    assert run_of(0).identical == 1
    assert run_of(0, 0, 2).identical == 3
    seen = run_of(0, 0, 3)
    assert (seen.identical, seen.identical_ns) == (1, 3)


def test_changes_that_add_up_end_the_run_however_small_each_of_them_is() -> None:
    assert run_of(0, 1, 2, 3, 4).identical == 2
    assert sum(run_of(0, 1, 2, 3, 4).fingerprint) == 3


def test_a_new_size_is_a_problem_until_it_has_lasted_a_second() -> None:
    large = [picture(seed=n) for n in range(3)]
    small = [picture(seed=n, size=(48, 64)) for n in range(12)]
    found = problems_of(*large, *small, period_s=0.1)
    assert found == [()] * 3 + [("frame_size",)] * 10 + [()] * 2


def test_a_size_that_flickers_is_never_accepted_and_the_old_one_stays() -> None:
    sizes = [(96, 128)] + [(48, 64), (24, 32)] * 15 + [(96, 128)]
    found = problems_of(*(picture(size=size, seed=number) for number, size in enumerate(sizes)))
    assert found == [(), *[("frame_size",)] * 30, ()]


def test_a_new_size_is_accepted_at_the_very_second() -> None:
    seen, _ = check(Seen(), GOOD, SETTINGS)
    small = replace(GOOD, size=(48, 64))
    for later_ns, found in ((1, ("frame_size",)), (SECOND, ("frame_size",)), (SECOND + 1, ())):
        seen, verdict = check(seen, replace(small, captured_mono_ns=5 * SECOND + later_ns), SETTINGS)
        assert verdict.problems == found
    assert (seen.size, seen.new_size) == ((48, 64), None)


def test_the_wait_for_a_new_size_begins_anew_when_the_old_one_comes_back() -> None:
    seen = Seen()
    for tenth, size in enumerate([(96, 128), (48, 64), (96, 128), (48, 64)]):
        seen, _ = check(seen, replace(GOOD, size=size, captured_mono_ns=tenth * SECOND), SETTINGS)
    assert (seen.size, seen.new_size, seen.new_size_ns) == ((96, 128), (48, 64), 3 * SECOND)


@pytest.mark.parametrize("step_ns", [0, -1, -SECOND])
def test_repeated_and_backward_time_stamps_are_refused_and_not_remembered(step_ns: int) -> None:
    seen, _ = check(Seen(), GOOD, SETTINGS)
    again, verdict = check(seen, replace(GOOD, captured_mono_ns=5 * SECOND + step_ns), SETTINGS)
    assert verdict == Verdict(("timestamp",))
    assert again == seen


def test_several_problems_are_all_named() -> None:
    found = problems_of(*[np.zeros((96, 128, 3), np.uint8)] * 12)
    assert found[-1] == ("exposure", "frozen")


def test_limits_themselves() -> None:
    assert problems(GOOD) == ()
    for name in ("dark", "bright"):
        assert problems(replace(GOOD, **{name: SETTINGS.clipped_share})) == ("exposure",)
        assert problems(replace(GOOD, **{name: 0.96})) == ()
    for name, limit, problem in (
        ("detail", SETTINGS.least_detail, "low_detail"),
        ("sharpness", SETTINGS.least_sharpness, "blurred"),
        ("structure", SETTINGS.least_structure, "noise"),
    ):
        assert problems(replace(GOOD, **{name: limit})) == ()
        assert problems(replace(GOOD, **{name: limit * 0.999})) == (problem,)
    assert problems(replace(GOOD, size=(16, 16))) == ()
    assert (
        problems(replace(GOOD, size=(15, 128))) == problems(replace(GOOD, size=(128, 15))) == ("frame_size",)
    )


def test_frozen_needs_ten_frames_and_a_whole_second() -> None:
    same, other = GOOD.fingerprint, (2,) * 72
    almost = Seen(captured_mono_ns=5 * SECOND - 1, size=(96, 128), fingerprint=same, identical=9)
    assert problems(GOOD, replace(almost, identical_ns=4 * SECOND)) == ("frozen",)
    assert problems(GOOD, replace(almost, identical_ns=4 * SECOND + 1)) == ()
    assert problems(GOOD, replace(almost, identical_ns=4 * SECOND, identical=8)) == ()
    seen, _ = check(replace(almost, identical_ns=7), replace(GOOD, fingerprint=other), SETTINGS)
    assert (seen.fingerprint, seen.identical, seen.identical_ns) == (other, 1, 5 * SECOND)


def test_three_frames_are_frozen_when_they_last_half_a_second_longer() -> None:
    almost = Seen(captured_mono_ns=5 * SECOND - 1, size=(96, 128), fingerprint=GOOD.fingerprint, identical=2)
    assert problems(GOOD, replace(almost, identical_ns=3_500_000_000)) == ("frozen",)
    assert problems(GOOD, replace(almost, identical_ns=3_500_000_001)) == ()
    assert problems(GOOD, replace(almost, identical_ns=0, identical=1)) == ()


def test_pictures_too_small_to_be_told_apart_are_not_counted_as_equal() -> None:
    tiny = replace(GOOD, size=(15, 15), fingerprint=())
    seen, _ = check(Seen(), tiny, SETTINGS)
    seen, _ = check(seen, replace(tiny, captured_mono_ns=6 * SECOND), SETTINGS)
    assert (seen.identical, seen.identical_ns) == (1, 6 * SECOND)


# ---- a picture out of focus, and a picture that is none ----


def scene(seed: int = 0, size: tuple[int, int] = (192, 256)) -> Image:
    """Fields of different brightness with hard edges, and grain."""
    generator = np.random.default_rng(seed)
    fields = generator.integers(60, 190, (6, 8)).repeat(size[0] // 6, 0).repeat(size[1] // 8, 1)
    grain = generator.normal(0, 4, (*fields.shape, 1))
    return np.clip(fields[..., None] + grain + np.zeros(3), 0, 255).astype(np.uint8)


def test_a_scene_out_of_focus_is_named_and_a_soft_one_is_judged() -> None:
    assert problems_of(scene()) == [()]
    assert problems_of(cv2.GaussianBlur(scene(), (0, 0), 1.5)) == [()]
    assert "blurred" in problems_of(cv2.GaussianBlur(scene(), (0, 0), 12))[0]


@pytest.mark.parametrize("size", [(96, 128), (200, 300), (480, 640)])
@pytest.mark.parametrize("kind", ["uniform", "gaussian", "salt and pepper", "grain"])
def test_noise_without_a_scene_is_named(kind: str, size: tuple[int, int]) -> None:
    generator = np.random.default_rng(1)
    shape = (*size, 3)
    pixels = {
        "uniform": generator.integers(0, 256, shape),
        "gaussian": generator.normal(110, 20, shape),
        "salt and pepper": 255 * generator.integers(0, 2, shape),
        "grain": 60 + generator.integers(-12, 13, shape),
    }[kind]
    assert "noise" in problems_of(np.clip(pixels, 0, 255).astype(np.uint8))[0]


def test_noise_is_named_also_when_the_rest_of_the_picture_shows_something() -> None:
    """A dead sensor behind a burnt-in clock, beside the judged part and within it."""
    for bottom in (40, 470):
        dead = np.random.default_rng(bottom).integers(126, 131, (480, 640, 1)).repeat(3, 2).astype(np.uint8)
        cv2.putText(dead, "2026-11-18 12:00:00", (20, bottom), 0, 1, (255, 255, 255), 2)
        assert problems_of(dead, crops=(JUDGED,)) == [("noise",)]
    half = scene(size=(480, 640))
    half[168:] = np.random.default_rng(0).integers(0, 256, (312, 640, 3))
    assert problems_of(half) == [()]
    assert problems_of(half, crops=(JUDGED,)) == [("noise",)]


def test_the_judged_part_may_be_dark_bright_or_without_detail_while_the_rest_is_not() -> None:
    for level, problem in ((3, "exposure"), (252, "exposure"), (128, "low_detail")):
        pixels = scene()
        pixels[60:] = level
        assert problems_of(pixels, crops=(JUDGED,)) == [(problem,)]
        assert problems_of(pixels, crops=(Crop(bottom=0.3),)) == [()]
    blurred = scene()
    blurred[60:] = cv2.GaussianBlur(blurred, (0, 0), 12)[60:]
    assert problems_of(blurred) == [()]
    assert problems_of(blurred, crops=(JUDGED,)) == [("blurred",)]


def test_of_several_regions_the_part_around_them_all_is_looked_at() -> None:
    pixels = scene()
    pixels[:60] = 3
    tracks = (Crop(left=0.1, right=0.3, top=0.6), Crop(left=0.6, right=0.9, top=0.4, bottom=0.9))
    assert problems_of(pixels, crops=tracks) == [()]
    assert look_at(Frame(pixels, 0, 1), SETTINGS, tracks).dark == 0.0
    around = look_at(Frame(pixels, 0, 1), SETTINGS, [Crop(left=0.1, right=0.9, top=0.4)])
    assert around.fingerprint == look_at(Frame(pixels, 0, 1), SETTINGS, tracks).fingerprint


def test_a_scene_with_strong_noise_is_still_a_scene() -> None:
    noisy = scene() + np.random.default_rng(0).normal(0, 40, (192, 256, 3))
    assert problems_of(np.clip(noisy, 0, 255).astype(np.uint8)) == [()]


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (15, 400), (400, 15)])
def test_a_picture_too_small_to_show_anything_is_refused(size: tuple[int, int]) -> None:
    frame = Frame(np.full((*size, 3), 120, np.uint8), 0, 1)
    look = look_at(frame, SETTINGS, [Crop()])
    assert (look.size, look.blind) == (size, (1.0,))
    assert "frame_size" in problems(look)


@pytest.mark.parametrize(
    ("region", "size"),
    [(Crop(right=0.05), (192, 256)), (Crop(top=0.95), (192, 256)), (Crop(right=0.01), (1080, 1920))],
)
def test_a_region_too_small_to_show_anything_is_refused(region: Crop, size: tuple[int, int]) -> None:
    assert problems_of(picture(size=size), crops=(region,)) == [("low_detail",)]


def test_the_smallest_picture_is_looked_at() -> None:
    look = look_at(Frame(picture(size=(16, 17)), 0, 1), SETTINGS, [Crop()])
    assert look.detail > 10
    assert look.blind == (0.0,)


# ---- dirt on the lens ----


def soiled(pixels: Image, left: float = 0.0) -> Image:
    """Mud from `left` to the right edge: nothing but its own brightness."""
    result = pixels.copy()
    result[:, int(left * pixels.shape[1]) :] = 90
    return result


def test_blind_shares_are_counted_in_each_region() -> None:
    crops = [Crop(), Crop(right=0.5), Crop(left=0.5), Crop(left=0.5, top=0.5)]
    look = look_at(Frame(soiled(scene(), left=0.5), 0, 1), SETTINGS, crops)
    assert look.blind == pytest.approx((0.5, 0.0, 1.0, 1.0), abs=0.1)


def watch(
    *blind: tuple[float, ...], standing: bool = False, seen: Seen | None = None
) -> tuple[Seen, Verdict]:
    """One second from look to look."""
    seen = seen or Seen()
    start_ns = 0 if seen.captured_mono_ns is None else seen.captured_mono_ns + SECOND
    for number, shares in enumerate(blind):
        look = replace(
            GOOD,
            captured_mono_ns=start_ns + number * SECOND,
            fingerprint=(start_ns + number,) * 72,
            blind=shares,
        )
        seen, verdict = check(seen, look, SETTINGS, standing)
    return seen, verdict


def test_a_covered_region_is_named_after_three_seconds() -> None:
    assert watch(*[(0.5,)] * 3)[1] == Verdict((), (False,))
    assert watch(*[(0.5,)] * 4)[1] == Verdict(("obstructed",), (True,))
    assert watch(*[(0.49,)] * 9)[1] == Verdict((), (False,))


def test_one_clear_look_ends_it() -> None:
    seen, _ = watch(*[(0.9,)] * 9)
    seen, verdict = watch((0.0,), seen=seen)
    assert verdict == Verdict((), (False,))
    assert seen.blind_s == (0.0,)


def test_one_covered_region_of_two_is_marked_and_the_picture_is_still_judged() -> None:
    assert watch(*[(0.9, 0.1)] * 6)[1] == Verdict((), (True, False))
    assert watch(*[(0.9, 0.8)] * 6)[1] == Verdict(("obstructed",), (True, True))


def test_time_at_a_standstill_does_not_count_but_clears_nothing() -> None:
    seen, verdict = watch(*[(0.9,)] * 20, standing=True)
    assert verdict.obstructed == (False,)
    seen, _ = watch(*[(0.9,)] * 4, seen=seen)
    assert watch((0.9,), standing=True, seen=seen)[1].problems == ("obstructed",)


@pytest.mark.parametrize(("gap_s", "counted_s"), [(1.5, 1.5), (1.501, 0.0), (60.0, 0.0)])
def test_time_without_pictures_says_nothing_of_the_lens(gap_s: float, counted_s: float) -> None:
    seen, _ = watch((0.9,), (0.9,))
    back = replace(GOOD, captured_mono_ns=(seen.captured_mono_ns or 0) + round(gap_s * SECOND), blind=(0.9,))
    seen, verdict = check(seen, back, SETTINGS)
    assert seen.blind_s == (1.0 + counted_s,)
    assert verdict.problems == ()


def test_a_moving_vehicle_is_assumed_and_short_limits_work() -> None:
    soon = SETTINGS.model_copy(update={"obstructed_s": 0.5})
    seen, _ = check(Seen(), replace(GOOD, blind=(1.0,)), soon)
    later = replace(GOOD, blind=(1.0,), captured_mono_ns=GOOD.captured_mono_ns + SECOND // 2)
    assert check(seen, later, soon)[1].obstructed == (True,)


def test_without_a_limit_nothing_is_obstructed() -> None:
    never = SETTINGS.model_copy(update={"obstructed_s": 0.0})
    assert check(Seen(), replace(GOOD, blind=(1.0,)), never)[1] == Verdict((), (False,))


# ---- roads ----


def test_a_rendered_drive_has_no_problem() -> None:
    pictures = [random_drive(0, 6.0, fps=5.0).frame(number) for number in range(30)]
    for crop in (Crop(), JUDGED, Crop(left=0.1, right=0.4, top=0.6)):
        assert set(problems_of(*pictures, period_s=0.2, crops=(crop,))) == {()}


def test_real_road_pictures_have_no_problem(shared_data) -> None:  # type: ignore[no-untyped-def]
    from edge_road.datasets.decode import read_image

    paths = sorted(p for p in (shared_data / "road3").rglob("*.*") if p.suffix in (".jpg", ".jpeg", ".png"))
    paths += sorted((shared_data / "rscd_sample").glob("*.jpg"))
    for crop in (Crop(), JUDGED):
        found = [problems_of(read_image(path), crops=(crop,))[0] for path in paths[::12]]
        assert len(found) > 20
        assert not [problems for problems in found if problems]


def test_real_videos_have_no_problem_also_where_nothing_moves(shared_data) -> None:  # type: ignore[no-untyped-def]
    import av

    for path in sorted((shared_data / "video").glob("*.mp4")):
        with av.open(str(path)) as video:
            pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)][:120]
        for crop in (Crop(), JUDGED):
            assert set(problems_of(*pictures, period_s=0.04, crops=(crop,))) == {()}
