"""Fifty vehicles, a real Mosquitto, the real command: states are right, and what is silent is unknown."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_harness import resident_mb
from fleet_traffic import Traffic
from mosquitto import Broker, free_port
from road_messages import road

from edge_road.runtime.events.event import Draft, Event, Severity

httpx = pytest.importorskip("httpx")
COUNT = 50


class FleetService:
    def __init__(self, folder: Path, broker: Broker, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "fleet.log"
        words = ["--broker", f"127.0.0.1:{broker.port}", "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edge_road.cli", "fleet", *words],
            stderr=open(self.log, "wb"),  # noqa: SIM115
        )

    def __enter__(self) -> FleetService:
        self.wait_for(lambda: self.get("health").status_code == 200)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.url}/{path}", timeout=10)

    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["vehicle"]: row for row in self.get("vehicles").json()}

    def states(self) -> dict[str, str]:
        return {name: row["state"] for name, row in self.rows().items()}

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        ends_s = time.monotonic() + timeout_s
        while time.monotonic() < ends_s:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if condition():
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


def lasting(traffic: Traffic, valid_for_ms: int) -> None:
    """One more word of each vehicle, that holds long enough to be looked at on a busy machine."""
    for vehicle in traffic.vehicles:
        values = json.loads(vehicle.line())
        values.pop("crc32")
        values["valid_for_ms"] = valid_for_ms
        line = type(road("dry", 0)).model_validate(values).to_json()
        traffic.client.publish(f"edge_road/{vehicle.name}/state", line, retain=True)


def test_fifty_vehicles_are_right_and_silent_ones_become_unknown(tmp_path: Path, broker: Broker) -> None:
    store = tmp_path / "fleet.sqlite"
    with (
        FleetService(tmp_path, broker, "--store", str(store)) as service,
        Traffic(broker.port, COUNT) as traffic,
    ):
        for _ in range(5):
            traffic.tick()
        lasting(traffic, 60_000)
        wanted = {vehicle.name: vehicle.state for vehicle in traffic.vehicles}
        service.wait_for(lambda: service.states() == wanted)
        assert len(service.get("tracks").json()["van-07"]) == 6
        assert all(
            row["reasons"] == ["no_frames"] for row in service.rows().values() if row["state"] == "unknown"
        )
        lasting(traffic, 200)
        service.wait_for(lambda: set(service.states().values()) == {"unknown"})
        assert service.rows()["van-00"]["reasons"] == ["stale"]
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
    with sqlite3.connect(store) as kept:
        assert kept.execute("SELECT count(*) FROM point").fetchone()[0] == 7 * COUNT


def test_events_are_stored_once_and_tracks_return_after_a_restart(tmp_path: Path, broker: Broker) -> None:
    options = ("--store", str(tmp_path / "fleet.sqlite"))
    draft = Draft("state", Severity.ALARM, 1, "2026-11-16T12:00:00.000Z", True, {"state": "icy"})
    line = Event("van-00", "b", 3, draft).to_json()
    with FleetService(tmp_path, broker, *options) as service, Traffic(broker.port, 1) as traffic:
        traffic.tick()
        for _ in range(2):
            traffic.client.publish("edge_road/van-00/events", line, qos=1)
        service.wait_for(
            lambda: "van-00" in service.rows() and len(service.get("vehicles/van-00/events").json()) == 1
        )
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(30) == 0
    with FleetService(tmp_path, broker, *options) as again:
        again.wait_for(lambda: "van-00" in again.rows())
        assert len(again.get("tracks").json()["van-00"]) == 1
    with sqlite3.connect(tmp_path / "fleet.sqlite") as kept:
        assert kept.execute("SELECT vehicle, seq, kind FROM event").fetchall() == [("van-00", 3, "state")]


def test_the_broker_may_go_and_come_back(tmp_path: Path, broker: Broker) -> None:
    with FleetService(tmp_path, broker) as service:
        broker.down()
        service.wait_for(lambda: service.get("health").status_code == 503)
        broker.up()
        service.wait_for(lambda: service.get("health").json()["broker"] == "ok")
        with Traffic(broker.port, 1) as traffic:
            lasting(traffic, 60_000)
            service.wait_for(lambda: service.states() == {"van-00": "dry"})


def test_the_pages_door_is_the_daemons(tmp_path: Path, broker: Broker) -> None:
    with FleetService(tmp_path, broker) as service:
        page = service.get("")
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert httpx.get(service.url, headers={"host": "evil.example"}).status_code == 421
        assert httpx.get(service.url, headers={"origin": "https://evil.example"}).status_code == 403
        assert service.get("vehicles/nobody/events").status_code == 404
        assert service.get("..%2f..%2fetc%2fpasswd").status_code == 404
        for name in ("page.css", "fleet.css", "fleet.js", "map.js", "icon.svg"):
            assert service.get(name).status_code == 200, name


@pytest.mark.parametrize("seconds", [float(os.environ.get("FLEET_SECONDS", "10"))])
def test_memory_stays_flat(tmp_path: Path, broker: Broker, seconds: float) -> None:
    """`benchmarks/fleet.py` does the same for ten minutes."""
    with FleetService(tmp_path, broker) as service, Traffic(broker.port, COUNT) as traffic:
        for _ in range(60):
            traffic.tick()
        service.wait_for(lambda: len(service.rows()) == COUNT)
        before_mb, ends_s = resident_mb(service.process.pid), time.monotonic() + seconds
        while time.monotonic() < ends_s:
            traffic.tick()
            time.sleep(0.05)
        assert resident_mb(service.process.pid) - before_mb < 8
