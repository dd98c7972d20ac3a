"""A drive: one camera, one road, known states, frames in any order."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.errors import DataError
from edge_road.synthetic.drives import Drive, Segment, random_drive

SMALL = {"height": 96, "width": 128}
PLAN = (Segment("dry", 3), Segment("wet", 2), Segment("icy", 3))


@pytest.fixture(scope="module")
def drive() -> Drive:
    return Drive(4, PLAN, fps=10, **SMALL)


def test_the_plan_tells_length_frames_and_states(drive: Drive) -> None:
    assert drive.duration_s == 8
    assert drive.frames == 80
    assert [drive.state_at(t) for t in (0, 2.99, 3, 4.99, 5, 8)] == ["dry", "dry", "wet", "wet", "icy", "icy"]


def test_frames_may_be_asked_for_in_any_order(drive: Drive) -> None:
    forwards = [drive.frame(number) for number in (0, 31, 79)]
    fresh = Drive(4, PLAN, fps=10, **SMALL)
    backwards = [fresh.frame(number) for number in (79, 31, 0)][::-1]
    for one, other in zip(forwards, backwards):
        np.testing.assert_array_equal(one, other)


def test_no_two_frames_are_identical(drive: Drive) -> None:
    frames = {drive.frame(number).tobytes() for number in range(drive.frames)}
    assert len(frames) == drive.frames


def test_neighbouring_frames_show_the_same_place(drive: Drive) -> None:
    first, next_one, far = (drive.frame(number).astype(float) for number in (0, 1, 60))
    other = Drive(5, PLAN, fps=10, **SMALL).frame(0).astype(float)
    assert np.abs(first - next_one).mean() < 0.5 * np.abs(first - other).mean()
    assert np.abs(first - next_one).mean() < np.abs(first - far).mean()


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_change_takes_well_under_a_second_on_either_side(seed: int) -> None:
    """0.7 s before it the road is as if it never changed, 0.7 s after it as if it had changed long ago."""
    drive = Drive(seed, (Segment("dry", 3), Segment("icy", 3)), fps=10, **SMALL)
    never = Drive(seed, (Segment("dry", 6),), fps=10, **SMALL)
    long_ago = Drive(seed, (Segment("dry", 1), Segment("icy", 5)), fps=10, **SMALL)
    np.testing.assert_array_equal(drive.frame(23), never.frame(23))
    np.testing.assert_array_equal(drive.frame(37), long_ago.frame(37))
    for other in (never, long_ago):
        assert np.abs(drive.frame(30).astype(float) - other.frame(30)).mean() > 1


def test_a_change_comes_from_the_horizon() -> None:
    drive = Drive(11, (Segment("dry", 3), Segment("icy", 3)), fps=10, **SMALL)
    never = Drive(11, (Segment("dry", 6),), fps=10, **SMALL)
    changed = np.abs(drive.frame(28).astype(float) - never.frame(28)).mean(axis=(1, 2))
    assert changed[:50].max() > 4 * changed[75:].max()


def test_segments_shorter_than_a_change_still_render() -> None:
    drive = Drive(1, tuple(Segment(state, 0.2) for state in ("dry", "icy", "wet", "dry")), fps=20, **SMALL)
    assert [drive.frame(number).shape for number in range(drive.frames)] == [(96, 128, 3)] * 16


@pytest.mark.parametrize("number", [-1, 80])
def test_frames_outside_the_drive_are_refused(drive: Drive, number: int) -> None:
    with pytest.raises(DataError, match="no such frame"):
        drive.frame(number)


@pytest.mark.parametrize("seconds", [-0.1, 8.1, float("nan")])
def test_times_outside_the_drive_are_refused(drive: Drive, seconds: float) -> None:
    with pytest.raises(DataError, match="outside the drive"):
        drive.state_at(seconds)


@pytest.mark.parametrize(
    ("seed", "segments", "fps"),
    [(1, (), 20.0), (-1, PLAN, 20.0), (1, PLAN, 0.0), (1, (Segment("dry", 0.01),), 20.0)],
)
def test_impossible_drives_are_refused(seed: int, segments: tuple[Segment, ...], fps: float) -> None:
    with pytest.raises(DataError):
        Drive(seed, segments, fps)


def test_a_picture_too_small_to_show_a_road_is_refused_at_once() -> None:
    with pytest.raises(DataError, match="too small"):
        Drive(1, PLAN, height=8, width=128)


def test_a_random_drive_of_a_minute_visits_every_state() -> None:
    drive = random_drive(3, 60)
    assert drive.duration_s == pytest.approx(60)
    assert {segment.state for segment in drive.segments} == {"dry", "wet", "icy"}
    assert len(drive.segments) >= 5
    assert random_drive(3, 60) == drive
    assert random_drive(4, 60) != drive
