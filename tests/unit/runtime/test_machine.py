from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge_road.clock import ScriptedClock
from edge_road.frames import Frame
from edge_road.runtime.machine import MachineCare, hottest_zone_c, power_mode
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.thermal import ThermalSettings, Throttle, throttle

SECOND = 10**9
SETTINGS = ThermalSettings()


def zone(folder: Path, number: int, text: str) -> None:
    (folder / f"thermal_zone{number}").mkdir(exist_ok=True)
    (folder / f"thermal_zone{number}" / "temp").write_text(text)


def test_the_hottest_zone_counts_and_nonsense_does_not(tmp_path: Path) -> None:
    assert hottest_zone_c(tmp_path / "nowhere") is None
    for number, text in enumerate(["45500\n", "71000", "-256000", "999999", "", "hot"]):
        zone(tmp_path, number, text)
    (tmp_path / "thermal_zone9").mkdir()
    assert hottest_zone_c(tmp_path) == 71.0


@pytest.mark.parametrize(
    ("text", "mode"), [("pmode:0002\n", "0002"), ("pmode:", None), ("fast", None), ("pmode:x", None)]
)
def test_the_power_mode_of_a_jetson(tmp_path: Path, text: str, mode: str | None) -> None:
    (tmp_path / "status").write_text(text)
    assert power_mode(tmp_path / "status") == mode
    assert power_mode(tmp_path / "nowhere") is None


def test_heat_halves_the_rate_step_by_step_and_coolness_brings_it_back() -> None:
    state, shares = Throttle(), []
    for seconds, degrees in [(10, 95), (15, 95), (20, 95), (30, 95), (40, 85), (50, 79), (60, 79), (70, 79)]:
        state = throttle(state, degrees, seconds * SECOND, SETTINGS, slowest=0.2)
        shares.append(state.share)
    assert shares == [0.5, 0.5, 0.25, 0.2, 0.2, 0.4, 0.8, 1.0]


@pytest.mark.parametrize("degrees", [None, 90.0, 80.0])
def test_at_the_limits_and_without_a_thermometer_nothing_changes(degrees: float | None) -> None:
    for past in (Throttle(), Throttle(0.5)):
        assert throttle(past, degrees, 99 * SECOND, SETTINGS, slowest=0.2) == past


def test_a_hot_machine_reports_its_new_rate_at_once(tmp_path: Path) -> None:
    zone(tmp_path, 0, "95000")
    clock, slot = ScriptedClock(SECOND), NewestFrameSlot()
    settings = ThermalSettings(zones=tmp_path, power_mode=tmp_path / "none")
    care = MachineCare(30.0, settings, clock)
    first = care.look(slot)
    assert first is not None
    assert (first.rate_hz, first.hottest_c, first.power_mode, first.dropped_share) == (15.0, 95.0, None, 0.0)
    assert care.look(slot) is None
    zone(tmp_path, 0, "60000")
    reports = []
    for _ in range(25):
        clock.sleep(1.0)
        if (report := care.look(slot)) is not None:
            reports.append(report.rate_hz)
    assert reports == [30.0, 30.0]  # the change after ten seconds, then the regular report


def test_dropped_frames_are_reported_as_a_share(tmp_path: Path) -> None:
    clock, slot = ScriptedClock(SECOND), NewestFrameSlot()
    care = MachineCare(30.0, ThermalSettings(zones=tmp_path), clock)
    care.look(slot)
    for number in range(10):
        slot.put(Frame(np.zeros((4, 4, 3), np.uint8), number, number))
    clock.sleep(10.0)
    report = care.look(slot)
    assert report is not None
    assert report.dropped_share == 0.9


def test_a_slow_rate_is_never_lowered_below_what_the_filter_needs(tmp_path: Path) -> None:
    zone(tmp_path, 0, "95000")
    report = MachineCare(4.0, ThermalSettings(zones=tmp_path), ScriptedClock(SECOND)).look(NewestFrameSlot())
    assert report is not None
    assert report.rate_hz == 4.0
