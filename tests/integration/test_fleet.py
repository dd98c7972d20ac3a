"""Fifty vehicles, a real Mosquitto, the real command: states are right, and what is silent is unknown."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_harness import resident_mb
from fleet_traffic import Traffic
from mosquitto import Broker

from edge_road.fleet.broker import BrokerAddress, Subscriber
from edge_road.runtime.events.event import Draft, Event, Severity

httpx = pytest.importorskip("httpx")
FleetService = pytest.importorskip("fleet_service").FleetService
COUNT = 50


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as running:
        yield running


def test_fifty_vehicles_are_right_and_silent_ones_become_unknown(tmp_path: Path, broker: Broker) -> None:
    store = tmp_path / "fleet.sqlite"
    with (
        FleetService(tmp_path, broker, "--store", str(store)) as service,
        Traffic(broker.port, COUNT) as traffic,
    ):
        for _ in range(5):
            traffic.tick()
        traffic.tick(60_000)
        wanted = {vehicle.name: vehicle.state for vehicle in traffic.vehicles}
        service.wait_for(lambda: service.states() == wanted)
        service.wait_for(lambda: len(service.get("tracks").json()["van-07"]) == 6)
        assert all(
            row["reasons"] == ["no_frames"] for row in service.rows().values() if row["state"] == "unknown"
        )
        traffic.tick(200)
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


def test_the_end_of_the_service_is_no_lost_connection(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    subscriber = Subscriber(BrokerAddress(port=broker.port), lambda topic, payload: None)
    subscriber.start()
    for _ in range(500):
        if subscriber.trouble == "":
            break
        time.sleep(0.02)
    subscriber.close()
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert (subscriber.trouble, warnings) == ("", [])


def test_the_broker_may_go_and_come_back(tmp_path: Path, broker: Broker) -> None:
    with FleetService(tmp_path, broker) as service:
        broker.down()
        service.wait_for(lambda: service.get("health").status_code == 503)
        broker.up()
        service.wait_for(lambda: service.get("health").json()["broker"] == "ok")
        with Traffic(broker.port, 1) as traffic:
            traffic.tick(60_000)
            service.wait_for(lambda: service.states() == {"van-00": "dry"})


def test_the_pages_door_is_the_daemons(tmp_path: Path, broker: Broker) -> None:
    token = tmp_path / "token"
    token.write_text("a-long-secret\n")
    with FleetService(tmp_path, broker, "--token-file", str(token), "--name", "fleet.example") as service:
        page = service.get("")
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert httpx.get(service.url, headers={"host": "evil.example"}).status_code == 421
        assert httpx.get(service.url, headers={"origin": "https://evil.example"}).status_code == 403
        assert service.get("vehicles/nobody/events").status_code == 404
        assert service.get("..%2f..%2fetc%2fpasswd").status_code == 404
        for name in ("page.css", "fleet.css", "fleet.js", "map.js", "icon.svg", "login.html", "login.js"):
            assert service.get(name).status_code == 200, name
        with httpx.Client(base_url=service.url, headers={"host": "fleet.example"}, timeout=10) as stranger:
            assert stranger.get("/").headers["location"] == "/login.html"
            assert stranger.get("/vehicles").status_code == 401
            assert stranger.post("/login", json={"token": "a-guess"}).status_code == 401
            cookie = stranger.post("/login", json={"token": "a-long-secret"}).headers["set-cookie"]
            signed_in = {"cookie": cookie.partition(";")[0]}
            assert stranger.get("/vehicles", headers=signed_in).json() == []


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
