"""Any drive and any published states: the score equals one counted on a fine grid of times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_road.conditions import STATES, UNKNOWN
from edge_road.synthetic.score import score_states
from edge_road.synthetic.segments import Segment

STEP_S = 0.25  # every time below is a multiple of it, so that a grid of midpoints misses nothing
quarters = st.integers(1, 24).map(lambda count: count * STEP_S)
truths = st.lists(st.builds(Segment, st.sampled_from(STATES), quarters), min_size=1, max_size=6)
observations = st.lists(
    st.tuples(st.integers(-4, 160).map(lambda count: count * STEP_S), st.sampled_from((*STATES, UNKNOWN))),
    max_size=20,
).map(lambda pairs: sorted(pairs, key=lambda pair: pair[0]))


def state_of(truth: list[Segment], time_s: float) -> str:
    for segment in truth:
        if time_s < segment.seconds:
            return segment.state
        time_s -= segment.seconds
    raise AssertionError("outside the drive")


def held(observed: list[tuple[float, str]], time_s: float) -> str:
    return next((state for begin_s, state in reversed(observed) if begin_s <= time_s), UNKNOWN)


@given(truth=truths, observed=observations)
@settings(max_examples=150, deadline=None)
def test_the_score_equals_a_count_on_a_fine_grid(
    truth: list[Segment], observed: list[tuple[float, str]]
) -> None:
    cells = round(sum(segment.seconds for segment in truth) / STEP_S)
    middles = [(i + 0.5) * STEP_S for i in range(cells)]
    pairs = [(state_of(truth, t), held(observed, t)) for t in middles]
    wrong = [seen not in (true, UNKNOWN) for true, seen in pairs]
    longest = run = 0
    for is_wrong in wrong:
        run = run + 1 if is_wrong else 0
        longest = max(longest, run)

    score = score_states(truth, observed)

    assert score.right_share == pytest.approx(sum(true == seen for true, seen in pairs) / cells)
    assert score.unknown_share == pytest.approx(sum(seen == UNKNOWN for _, seen in pairs) / cells)
    assert score.right_share + score.unknown_share + sum(wrong) / cells == pytest.approx(1)
    assert score.longest_wrong_s == pytest.approx(longest * STEP_S)
    icy = [seen for true, seen in pairs if true == "icy"]
    assert score.missed_ice_s == pytest.approx(sum(seen in ("dry", "wet") for seen in icy) * STEP_S)
    assert score.unwarned_ice_s == pytest.approx(sum(seen != "icy" for seen in icy) * STEP_S)
    said_before = [UNKNOWN, *(seen for _, seen in pairs)]
    alarms = sum(
        seen == "icy" != true and before != "icy" for before, (true, seen) in zip(said_before, pairs)
    )
    assert score.false_alarms == alarms


@given(truth=truths)
@settings(deadline=None)
def test_publishing_the_truth_is_always_perfect(truth: list[Segment]) -> None:
    observed, begin_s = [], 0.0
    for segment in truth:
        observed.append((begin_s, segment.state))
        begin_s += segment.seconds
    score = score_states(truth, observed)
    assert score.right_share == pytest.approx(1)
    assert (score.longest_wrong_s, score.icy_delay_s, score.false_alarms) == (0, 0, 0)
