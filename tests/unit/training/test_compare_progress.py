"""How long the rest of a comparison will take."""

from __future__ import annotations

import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.recipe import Recipe
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.plan import Trial
from edge_road.training.compare.progress import TimeLeft, TrialProgress

TRIALS = [Trial(row, "fold", k, Recipe(name="x", seed=k)) for k in range(2) for row in ("quick", "slow")]


def test_a_row_is_expected_to_take_as_long_as_it_did_before() -> None:
    time = TimeLeft(TRIALS)
    assert time.left_s is None
    time.finished(TRIALS[0], 10.0)
    assert time.left_s == 10.0 + 10.0 + 10.0
    time.finished(TRIALS[1], 40.0)
    assert time.left_s == 10.0 + 40.0
    time.finished(TRIALS[2], 12.0)
    time.finished(TRIALS[3], 40.0)
    assert time.left_s == 0.0


def test_what_was_only_read_again_says_nothing_about_time() -> None:
    time = TimeLeft(TRIALS[2:])
    time.finished(TRIALS[0], 0.1)
    assert time.left_s is None
    assert time.to_do == TRIALS[2:]


def test_a_row_that_is_given_up_takes_no_more_time() -> None:
    time = TimeLeft(TRIALS)
    time.finished(TRIALS[0], 10.0)
    time.given_up(TRIALS[1])
    assert time.left_s == 10.0


def test_each_trial_leaves_one_line_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    right = {
        "clean": np.array([[True, True, False, True]]),
        "stripes": np.array([[True, False, False, True]]),
    }
    answers = Answers(("a", "b", "c", "d"), np.zeros(4, np.int64), np.zeros(4, bool), right, {}, {})
    clock = ScriptedClock()
    progress = TrialProgress(TRIALS, TRIALS, clock)
    progress.begin(TRIALS[0])
    clock.sleep(1800)
    progress.finish(TRIALS[0], answers)
    assert capsys.readouterr().out == ("1/4  quick, fold 1: clean 75.0%, perturbed 50.0%; 1 h 30 min left\n")
