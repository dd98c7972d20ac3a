"""The computer's figures for Prometheus."""

from __future__ import annotations

from collections import Counter

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime.evidence import Machine
from edge_road.runtime.status import Status

pytest.importorskip("prometheus_client")


def lines(status: Status) -> list[str]:
    from edge_road.runtime.outputs.metrics import Metrics

    return Metrics(status).text().decode().splitlines()


def test_what_the_worker_saw_of_the_machine_is_told() -> None:
    status = Status("van", "boot", ScriptedClock())
    assert "edge_road_throttled 1.0" not in lines(status)
    status.machine = Machine(
        rate_hz=15.0, hottest_c=91.5, power_mode="0002", dropped_share=0.25, throttled=True, available_mb=2.0
    )
    told = lines(status)
    for line in (
        "edge_road_rate_hertz 15.0",
        "edge_road_temperature_celsius 91.5",
        "edge_road_throttled 1.0",
        "edge_road_dropped_share 0.25",
        "edge_road_memory_available_bytes 2.097152e+06",
        "edge_road_rehearsal 0.0",
    ):
        assert line in told
    assert sum(line.startswith("edge_road_machine{") for line in told) == 1
    machine = status.health()["machine"]
    assert (machine["hottest_c"], machine["power_mode"], machine["throttled"]) == (91.5, "0002", True)
    assert machine["cores"] >= 1


def test_frames_that_were_not_judged_are_counted_by_their_problem() -> None:
    status = Status("van", "boot", ScriptedClock())
    status.unfit = Counter(noise=2, frozen=1)
    assert 'edge_road_frames_unfit_total{problem="noise"} 2.0' in lines(status)


def test_a_rehearsal_is_not_ok() -> None:
    status = Status("van", "boot", ScriptedClock())
    status.rehearsal = ("camera.black@1-2",)
    assert "edge_road_rehearsal 1.0" in lines(status)
    assert status.health()["rehearsal"] == ["camera.black@1-2"]
    assert not status.health()["ok"]
