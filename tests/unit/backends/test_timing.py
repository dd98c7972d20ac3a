"""The time of a call is a median of single calls, without those that warm it up."""

from __future__ import annotations

import pytest

from edge_road.backends.timing import MEASURED, WARM_UP, best_precision, median_ms
from edge_road.bundle import Precision
from edge_road.clock import ScriptedClock


def test_slow_calls_of_the_warm_up_do_not_count() -> None:
    clock, calls = ScriptedClock(), iter([9.0] * WARM_UP + [0.004] * MEASURED)
    assert median_ms(lambda: clock.sleep(next(calls)), clock) == pytest.approx(4.0)


def test_it_is_the_call_in_the_middle() -> None:
    clock, calls = ScriptedClock(), iter(range(WARM_UP + MEASURED))
    middle_s = WARM_UP + MEASURED // 2
    assert median_ms(lambda: clock.sleep(next(calls)), clock) == pytest.approx(1e3 * middle_s)


@pytest.mark.parametrize(
    ("latency_ms", "best"),
    [
        ({"float32": 2.0, "float16": 1.0, "int8": 0.8}, "int8"),
        ({"float32": 2.0, "float16": 1.0, "int8": 0.95}, "float16"),
        ({"float32": 1.0, "int8": 1.2}, "float32"),
        ({"int8": 1.0}, "int8"),
        ({"float32": 1.0}, "float32"),
    ],
)
def test_int8_must_earn_its_place(latency_ms: dict[Precision, float], best: str) -> None:
    chosen, reason = best_precision(latency_ms)
    assert chosen == best
    assert ("does not gain" in reason) == (len(latency_ms) > 1 and best != "int8")
