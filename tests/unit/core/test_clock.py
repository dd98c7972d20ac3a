from __future__ import annotations

from datetime import datetime, timezone

from edge_road.clock import ScriptedClock, SystemClock, utc_text


def test_a_scripted_clock_moves_only_when_told() -> None:
    clock = ScriptedClock(mono_ns=5)
    assert clock.mono_ns() == clock.mono_ns() == 5
    clock.sleep(1.5)
    clock.sleep(-1.0)
    assert clock.mono_ns() == 5 + 1_500_000_000
    assert utc_text(clock.utc()) == "2026-01-01T00:00:01.500Z"


def test_the_system_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.mono_ns() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.utc().tzinfo is timezone.utc


def test_utc_text_is_iso_with_milliseconds() -> None:
    assert utc_text(datetime(2026, 2, 3, 4, 5, 6, 789_000, timezone.utc)) == "2026-02-03T04:05:06.789Z"
