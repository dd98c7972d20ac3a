"""How published states are judged, on cases worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from road_messages import road

from edge_road.errors import DataError
from edge_road.synthetic.score import score_messages, score_states
from edge_road.synthetic.segments import Segment

# 0 dry 10 icy 20 wet 30
TRUTH = [Segment("dry", 10), Segment("icy", 10), Segment("wet", 10)]


def test_following_the_truth_exactly_is_perfect() -> None:
    score = score_states(TRUTH, [(0, "dry"), (10, "icy"), (20, "wet")])
    assert score.right_share == 1.0
    assert (score.unknown_share, score.longest_wrong_s, score.icy_delay_s) == (0, 0, 0)


def test_silence_is_unknown_and_ice_was_missed_for_its_whole_length() -> None:
    score = score_states(TRUTH, [])
    assert (score.right_share, score.unknown_share) == (0.0, 1.0)
    assert score.longest_wrong_s == 0.0
    assert score.icy_delay_s == 10.0


def test_a_late_daemon_is_wrong_around_changes_only() -> None:
    # unknown 0-1, dry 1-11.5 (1.5 s into ice), icy 11.5-20.5 (0.5 s into wet), wet to the end
    score = score_states(TRUTH, [(1, "dry"), (11.5, "icy"), (20.5, "wet")])
    assert score.unknown_share == pytest.approx(1 / 30)
    assert score.right_share == pytest.approx(27 / 30)
    assert score.longest_wrong_s == pytest.approx(1.5)
    assert score.icy_delay_s == pytest.approx(1.5)


def test_a_wrong_state_goes_on_through_a_change_to_another_one() -> None:
    score = score_states(TRUTH, [(0, "dry")])
    assert score.longest_wrong_s == pytest.approx(20.0)
    assert score.icy_delay_s == pytest.approx(10.0)


def test_two_wrong_states_in_a_row_are_one_wrong_stretch_and_unknown_ends_it() -> None:
    # wrong: wet 2-4 and icy 4-5 (3 s), unknown 5-6, wet 6-7 (1 s), right afterwards
    observed = [
        (0, "dry"),
        (2, "wet"),
        (4, "icy"),
        (5, "unknown"),
        (6, "wet"),
        (7, "dry"),
        (10, "icy"),
        (20, "wet"),
    ]
    score = score_states(TRUTH, observed)
    assert score.longest_wrong_s == pytest.approx(3.0)


def test_unknown_between_two_equal_states_is_not_wrong() -> None:
    score = score_states([Segment("dry", 10)], [(0, "dry"), (4, "unknown"), (6, "dry")])
    assert score.longest_wrong_s == 0.0
    assert score.unknown_share == pytest.approx(0.2)


def test_the_longest_of_several_icy_delays_counts() -> None:
    truth = [Segment("icy", 4), Segment("dry", 4), Segment("icy", 4)]
    score = score_states(truth, [(0.5, "icy"), (4, "dry"), (9, "icy")])
    assert score.icy_delay_s == pytest.approx(1.0)


def test_ice_announced_early_has_no_delay_but_is_false_until_then() -> None:
    score = score_states([Segment("dry", 5), Segment("icy", 5)], [(0, "dry"), (4, "icy")])
    assert (score.icy_delay_s, score.false_alarms) == (0.0, 1)
    assert score.longest_wrong_s == pytest.approx(1.0)


def test_alarms_and_missed_ice_are_counted() -> None:
    truth = [Segment("dry", 60), Segment("icy", 30), Segment("wet", 90)]
    observed = [(0, "dry"), (10, "icy"), (14, "dry"), (65, "icy"), (80, "unknown"), (85, "wet")]
    score = score_states(truth, observed)
    assert score.false_alarms == 1
    assert score.false_alarms_per_hour == pytest.approx(3600 / 150)
    assert (score.missed_ice_s, score.unwarned_ice_s) == (5 + 5, 15)
    assert score.of_ice == (
        "false alarms 1 (24.0 per hour without ice), called dry or wet 10.0 s, not warned of 15.0 s, "
        "longest delay 5.0 s"
    )


def test_a_warning_that_outlasts_the_ice_is_late_and_not_a_new_alarm() -> None:
    assert score_states(TRUTH, [(10, "icy"), (25, "wet")]).false_alarms == 0


def test_two_alarms_with_unknown_between_are_two() -> None:
    observed = [(1, "icy"), (2, "unknown"), (3, "icy"), (4, "dry")]
    assert score_states([Segment("dry", 3600)], observed).false_alarms_per_hour == 2


def test_silence_is_unwarned_ice_and_a_drive_on_ice_has_no_false_alarm() -> None:
    score = score_states([Segment("icy", 20)], [])
    assert (score.unwarned_ice_s, score.missed_ice_s, score.false_alarms_per_hour) == (20, 0, 0)


def test_equal_neighbouring_segments_are_one_stretch() -> None:
    score = score_states([Segment("icy", 5), Segment("icy", 5)], [(0, "dry"), (6, "icy")])
    assert score.icy_delay_s == pytest.approx(6.0)


def test_observations_outside_the_drive_count_only_where_they_hold() -> None:
    score = score_states([Segment("dry", 5)], [(-1, "dry"), (99, "icy")])
    assert score.right_share == 1.0


def test_of_two_observations_at_one_time_the_later_holds() -> None:
    assert score_states([Segment("dry", 5)], [(0, "wet"), (0, "dry")]).right_share == 1.0


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        ([(0.0, "muddy")], "no such road state"),
        ([(2.0, "dry"), (1.0, "wet")], "backwards"),
        ([(0.0, "dry"), (float("nan"), "wet")], "backwards"),
    ],
)
def test_impossible_observations_are_refused(observed: list[tuple[float, str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        score_states(TRUTH, observed)


def test_a_drive_without_segments_is_refused() -> None:
    with pytest.raises(DataError, match="at least one segment"):
        score_states([], [])


@pytest.mark.parametrize(
    ("state", "seconds"), [("dri", 1.0), ("unknown", 1.0), ("dry", 0.0), ("dry", float("nan"))]
)
def test_impossible_segments_are_refused(state: str, seconds: float) -> None:
    with pytest.raises(DataError):
        Segment(state, seconds)


def test_messages_are_scored_from_the_moment_the_drive_began(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    known = [{"state": "dry", "seconds": 2}, {"state": "icy", "seconds": 2}]
    truth.write_text(json.dumps({"start_mono_ns": 5_000_000_000, "segments": known}))
    messages = [
        road("dry", 1, published_mono_ns=5_000_000_000),
        road("icy", 2, published_mono_ns=8_000_000_000),
    ]
    score = score_messages(messages, truth)
    assert (score.right_share, score.missed_ice_s, score.false_alarms) == (0.75, 1.0, 0)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"segments": [3]}', '{"segments": [], "start_mono_ns": null}']
)
def test_what_tells_no_true_states_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "truth.json").write_text(content)
    with pytest.raises(DataError, match=r"true states of the drive.*\n.*truth\.json"):
        score_messages([], tmp_path / "truth.json")
