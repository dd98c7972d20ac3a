"""Random drives keep their promises for any seed and length."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_road.conditions import STATES
from edge_road.synthetic.drives import random_drive
from edge_road.synthetic.segments import begins


@given(seed=st.integers(0, 2**32), duration_s=st.floats(0.5, 600))
@settings(deadline=None)
def test_a_random_drive_has_its_length_and_changes_at_every_segment(seed: int, duration_s: float) -> None:
    drive = random_drive(seed, duration_s)
    assert drive.duration_s == pytest.approx(duration_s)
    states = [segment.state for segment in drive.segments]
    assert all(before != after for before, after in pairwise(states))
    if duration_s >= 18:
        assert set(states) == set(STATES)
        assert min(segment.seconds for segment in drive.segments) >= 5.999


@given(seed=st.integers(0, 2**32), share=st.floats(0, 1))
@settings(deadline=None)
def test_the_state_at_any_time_is_that_of_the_segment_around_it(seed: int, share: float) -> None:
    drive = random_drive(seed, 60)
    seconds = share * drive.duration_s
    times = begins(drive.segments)
    around = [s.state for s, begin, end in zip(drive.segments, times, times[1:]) if begin <= seconds < end]
    assert drive.state_at(seconds) == (around[0] if around else drive.segments[-1].state)
