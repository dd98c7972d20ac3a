"""False alarms and missed ice on a drive, counted by hand and beside the score of drives."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.errors import DataError
from edge_road.evaluation.drive_alarms import drive_alarms
from edge_road.synthetic.score import Segment, score_states

DRIVE = (Segment("dry", 60), Segment("icy", 30), Segment("wet", 90))


def test_alarms_and_missed_ice_are_counted_in_seconds() -> None:
    observed = [(0, "dry"), (10, "icy"), (14, "dry"), (65, "icy"), (80, "unknown"), (85, "wet")]
    alarms = drive_alarms(DRIVE, observed)
    assert alarms.false_alarms == 1
    assert alarms.false_alarms_per_hour == pytest.approx(3600 / 150)
    assert alarms.false_alarm_s == 4
    assert alarms.missed_ice_s == 5 + 5
    assert alarms.unwarned_ice_s == 15
    assert (alarms.duration_s, alarms.icy_s) == (180, 30)


def test_a_warning_that_outlasts_the_ice_is_late_and_not_a_new_alarm() -> None:
    alarms = drive_alarms(DRIVE, [(60, "icy"), (100, "wet")])
    assert alarms.false_alarms == 0
    assert alarms.false_alarm_s == 10


def test_two_alarms_with_unknown_between_are_two() -> None:
    alarms = drive_alarms([Segment("dry", 3600)], [(1, "icy"), (2, "unknown"), (3, "icy"), (4, "dry")])
    assert alarms.false_alarms_per_hour == 2


def test_silence_is_unwarned_ice_and_a_drive_on_ice_has_no_false_alarm() -> None:
    alarms = drive_alarms([Segment("icy", 20)], [])
    assert (alarms.unwarned_ice_s, alarms.missed_ice_s, alarms.false_alarms_per_hour) == (20, 0, 0)


def test_seconds_agree_with_the_score_of_drives() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        truth = [
            Segment(str(draw.choice(["dry", "wet", "icy"])), float(draw.integers(1, 20))) for _ in range(5)
        ]
        times = np.sort(draw.uniform(0, 60, 15))
        observed = [(float(t), str(draw.choice(["dry", "wet", "icy", "unknown"]))) for t in times]
        assert drive_alarms(truth, observed).false_alarm_s == pytest.approx(
            score_states(truth, observed).false_icy_s
        )


@pytest.mark.parametrize(
    ("truth", "observed", "message"),
    [
        ([], [], "at every time"),
        (DRIVE, [(0, "slippery")], "no such road state"),
        (DRIVE, [(5, "dry"), (4, "dry")], "backwards"),
    ],
)
def test_impossible_drives_are_refused(truth, observed, message) -> None:
    with pytest.raises(DataError, match=message):
        drive_alarms(truth, observed)
