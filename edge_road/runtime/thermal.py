"""How often to look when the computer is hot: a pure rule with hysteresis."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from edge_road.config import StrictModel


class ThermalSettings(StrictModel):
    hot_c: float = Field(default=90.0, ge=40, le=120)
    """above it the rate is halved, again and again"""
    cool_c: float = Field(default=80.0, ge=30, le=115)
    """below it the rate is doubled again"""
    step_s: float = Field(default=10.0, gt=0)
    """from one change of the rate to the next"""
    zones: Path = Path("/sys/class/thermal")
    """where the kernel shows its temperature sensors; the hottest counts"""
    power_mode: Path = Path("/var/lib/nvpmodel/status")
    """where a Jetson keeps its power mode"""


@dataclass(frozen=True)
class Throttle:
    """How often frames are judged, as a share of the wanted rate."""

    share: float = 1.0
    changed_ns: int = 0


def throttle(
    past: Throttle, hottest_c: float | None, now_ns: int, settings: ThermalSettings, slowest: float
) -> Throttle:
    """Hysteresis in degrees and in time: half as often when hot, twice as often when cool again."""
    if hottest_c is None or now_ns - past.changed_ns < settings.step_s * 1e9:
        return past
    if hottest_c > settings.hot_c and past.share > slowest:
        return Throttle(max(slowest, past.share / 2), now_ns)
    if hottest_c < settings.cool_c and past.share < 1.0:
        return Throttle(min(1.0, past.share * 2), now_ns)
    return past
