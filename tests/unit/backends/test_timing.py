"""The time of a call is a median of single calls, without those that warm it up."""

from __future__ import annotations

import pytest

from edge_road.backends.timing import MEASURED, WARM_UP, median_ms
from edge_road.clock import ScriptedClock


def test_slow_calls_of_the_warm_up_do_not_count() -> None:
    clock, calls = ScriptedClock(), iter([9.0] * WARM_UP + [0.004] * MEASURED)
    assert median_ms(lambda: clock.sleep(next(calls)), clock) == pytest.approx(4.0)


def test_it_is_the_call_in_the_middle() -> None:
    clock, calls = ScriptedClock(), iter(range(WARM_UP + MEASURED))
    middle_s = WARM_UP + MEASURED // 2
    assert median_ms(lambda: clock.sleep(next(calls)), clock) == pytest.approx(1e3 * middle_s)
