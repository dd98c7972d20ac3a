"""How long a call takes, in the machine's time, and which precision that speaks for."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from edge_road.bundle import Precision
from edge_road.clock import Clock, SystemClock

WARM_UP, MEASURED = 3, 15
LEAST_GAIN = 0.1
"""share of the time that INT8 must save to be preferred"""


def median_ms(call: Callable[[], object], clock: Clock | None = None) -> float:
    """Of single calls, after a few that warm it up."""
    clock = clock or SystemClock()
    took_ns = []
    for _ in range(WARM_UP + MEASURED):
        began_ns = clock.mono_ns()
        call()
        took_ns.append(clock.mono_ns() - began_ns)
    return statistics.median(took_ns[WARM_UP:]) / 1e6


def best_precision(latency_ms: Mapping[Precision, float]) -> tuple[Precision, str]:
    """INT8 must earn its place: it costs some accuracy, and on small networks it may gain nothing."""
    floats = {name: ms for name, ms in latency_ms.items() if name != "int8"}
    best = min(floats or latency_ms, key=lambda name: latency_ms[name])
    text = ", ".join(f"{name} {ms:.2f} ms" for name, ms in latency_ms.items())
    if "int8" not in latency_ms or not floats:
        return best, text
    if latency_ms["int8"] <= (1 - LEAST_GAIN) * latency_ms[best]:
        return "int8", text
    return best, f"{text}: INT8 does not gain {LEAST_GAIN:.0%}"
