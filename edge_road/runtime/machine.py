"""The computer's own health: when it is too hot it looks less often, and it says so."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from edge_road.clock import Clock, SystemClock
from edge_road.runtime.evidence import Machine
from edge_road.runtime.machine_facts import available_mb, held_back
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.thermal import ThermalSettings, Throttle, throttle

log = logging.getLogger(__name__)

SLOWEST_HZ = 5.0
"""slower frames would be too far apart for the temporal filter"""
MOST_DROPPED = 0.01
_DEGREES = (-40.0, 150.0)


def hottest_zone_c(folder: Path) -> float | None:
    """Degrees of the hottest thermal zone; zones that cannot be read or say nonsense do not count."""
    found = []
    for path in sorted(folder.glob("thermal_zone*/temp"))[:64]:
        try:
            degrees = int(path.read_text()[:16]) / 1000
        except (OSError, ValueError):
            continue
        if _DEGREES[0] < degrees < _DEGREES[1]:
            found.append(degrees)
    return max(found, default=None)


def power_mode(path: Path) -> str | None:
    """The number of a Jetson's power mode (`pmode:0002`), if there is one."""
    try:
        text = path.read_text()[:64].strip()
    except (OSError, UnicodeDecodeError):
        return None
    name, _, number = text.partition(":")
    return number if name == "pmode" and number.isdigit() else None


class MachineCare:
    """Looks at the machine once a second, and reports every ten seconds and when the rate changes."""

    LOOK_S, REPORT_S = 1.0, 10.0

    def __init__(self, rate_hz: float, settings: ThermalSettings, clock: Clock | None = None) -> None:
        self._rate_hz, self._settings = rate_hz, settings
        self._clock = clock or SystemClock()
        self._slowest = min(1.0, SLOWEST_HZ / rate_hz)
        self._throttle = Throttle(changed_ns=self._clock.mono_ns() - round(settings.step_s * 1e9))
        self._look_ns = self._report_ns = 0
        self._frames = self._dropped = 0

    def look(self, slot: NewestFrameSlot[Any]) -> Machine | None:
        now_ns = self._clock.mono_ns()
        if now_ns < self._look_ns:
            return None
        self._look_ns = now_ns + round(self.LOOK_S * 1e9)
        hottest_c = hottest_zone_c(self._settings.zones)
        before = self._throttle
        self._throttle = throttle(before, hottest_c, now_ns, self._settings, self._slowest)
        rate_hz = self._rate_hz * self._throttle.share
        if self._throttle.share != before.share:
            log.warning("%.0f C: at most %.3g pictures a second from now on", hottest_c, rate_hz)
        elif now_ns < self._report_ns:
            return None
        self._report_ns = now_ns + round(self.REPORT_S * 1e9)
        return Machine(
            rate_hz=rate_hz,
            hottest_c=hottest_c,
            power_mode=power_mode(self._settings.power_mode),
            dropped_share=self._dropped_share(slot),
            throttled=self._throttle.share < 1.0 or held_back(),
            available_mb=available_mb(),
        )

    def _dropped_share(self, slot: NewestFrameSlot[Any]) -> float:
        frames, dropped = slot.frames - self._frames, slot.dropped - self._dropped
        self._frames, self._dropped = slot.frames, slot.dropped
        share = dropped / frames if frames else 0.0
        if share > MOST_DROPPED:
            log.warning("%.0f %% of the frames are dropped: the model is slower than the camera", 100 * share)
        return share
