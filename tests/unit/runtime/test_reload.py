"""New settings for a running daemon: what they change, and for whom."""

from __future__ import annotations

import io
from typing import Any

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime import child
from edge_road.runtime.link import Setup
from edge_road.runtime.live_line import LiveLine
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.reload import needs_new_worker
from edge_road.runtime.signals import Requests
from edge_road.runtime.status import Status
from edge_road.runtime.supervisor import Supervisor
from edge_road.runtime.surroundings import Surroundings
from edge_road.runtime.systemd import Systemd
from edge_road.runtime.vehicle import Vehicle


def with_page(**settings: Any) -> Vehicle:
    return Vehicle.model_validate({"outputs": [{"kind": "http", **settings}]})


@pytest.mark.parametrize("snapshots", [True, False])
def test_a_picture_that_is_switched_on_or_off_needs_a_new_worker(snapshots: bool) -> None:
    assert needs_new_worker(with_page(snapshots=not snapshots), with_page(snapshots=snapshots))


def test_a_page_at_another_port_needs_no_new_worker() -> None:
    assert not needs_new_worker(with_page(snapshots=True), with_page(snapshots=True, port=8771))


class NoJournal:
    def note(self, *_: object) -> None:
        pass


def supervisor_of(vehicle: Vehicle, after: Vehicle) -> Supervisor:
    """Without processes and outputs; `after` is what its vehicle file says by now."""
    clock, journal = ScriptedClock(mono_ns=10**9), NoJournal()
    around = Surroundings(
        publisher=Publisher(vehicle, clock),
        journal=journal,  # type: ignore[arg-type]
        status=Status("van", "boot", clock),
        systemd=Systemd(clock, {}),
        live=LiveLine(io.StringIO(), clock),
        requests=Requests(),
        load_again=lambda: after,
    )
    return Supervisor(vehicle, around, clock)


def test_a_worker_that_is_started_later_begins_with_the_settings_of_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[Setup] = []

    def start(setup: Setup) -> None:
        begun.append(setup)
        raise OSError

    monkeypatch.setattr(child, "_started", start)
    before, after = Vehicle(heartbeat_hz=2.0), Vehicle(heartbeat_hz=4.0)
    supervisor = supervisor_of(before, after)
    supervisor._reload()
    supervisor._worker.start_if_due()
    assert [setup.vehicle for setup in begun] == [after]
