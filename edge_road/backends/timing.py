"""How long a call takes, in the machine's time."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from edge_road.clock import Clock, SystemClock

WARM_UP, MEASURED = 3, 15


def median_ms(call: Callable[[], object], clock: Clock | None = None) -> float:
    """Of single calls, after a few that warm it up."""
    clock = clock or SystemClock()
    took_ns = []
    for _ in range(WARM_UP + MEASURED):
        began_ns = clock.mono_ns()
        call()
        took_ns.append(clock.mono_ns() - began_ns)
    return statistics.median(took_ns[WARM_UP:]) / 1e6
