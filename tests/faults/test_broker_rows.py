"""Row 29: a broker that is away, silent, slow, cut off, refusing or expired costs no event and no moment."""

from __future__ import annotations

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from camera_servers import wait_until
from daemon_harness import resident_mb
from fault_rows import FaultRow
from mosquitto import Backend, Broker, free_port
from road_messages import blind, road

from edge_road.clock import SystemClock
from edge_road.runtime.events.event import Severity, parse_event
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.outputs.mqtt import Mqtt
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import EventSettings, MqttOutput

pytest.importorskip("paho.mqtt")
HOURS, EVENTS = 24, 1440
"""an event a minute for a day"""


class Unreliable:
    """A TCP proxy before the broker; `behaviour` can be changed at any time."""

    def __init__(self, target: int) -> None:
        self.behaviour = "good"
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._open += [client, broker]
            for source, target in ((client, broker), (broker, client)):
                threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while content := source.recv(4096):
                while self.behaviour == "silent":
                    time.sleep(0.02)
                if self.behaviour == "slow":
                    time.sleep(0.05)
                target.sendall(content)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.reset()


class Sender:
    """Outbox and output as the supervisor uses them; `slowest_s` is the longest that it had to wait."""

    def __init__(self, folder: Path, port: int, **settings: Any) -> None:
        vehicle = Vehicle(vehicle="van", events=EventSettings(path=folder / "events.sqlite"))
        self.journal = Journal(vehicle, "b", SystemClock())
        chosen = {"connect_s": 1.0, "keepalive_s": 2, "events_per_s": 5000.0, **settings}
        output = MqttOutput.model_validate({"kind": "mqtt", "port": port, **chosen})
        offline = blind("offline", 0).to_json
        self.mqtt = Mqtt(output, "van", self.journal.writer, offline, SystemClock())
        self.journal.start()
        self.mqtt.start()
        self.noted = 0
        self.slowest_s = 0.0

    def note(self, count: int) -> None:
        for _ in range(count):
            began_s = time.monotonic()
            message = road("dry", self.noted)
            self.mqtt.publish(message, message.to_json())
            self.journal.note("state", Severity.NOTE, {"number": self.noted})
            self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)
            self.noted += 1

    def trouble(self) -> str:
        return self.mqtt.health().detail.lower()

    def close(self) -> None:
        self.mqtt.close(3)
        self.journal.writer.close(3)


@contextmanager
def sender_to(folder: Path, port: int, **settings: Any) -> Iterator[Sender]:
    sender = Sender(folder, port, **settings)
    try:
        yield sender
    finally:
        sender.close()


def numbers(backend: Backend) -> list[int]:
    events = [parse_event(payload).draft.details for payload in backend.of("events")]
    return [event["number"] for event in events if "number" in event]


def test_a_day_without_a_broker_and_then_a_bad_line_lose_no_event(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    with Broker(tmp_path) as broker:
        broker.down()
        line = Unreliable(broker.port)
        with sender_to(tmp_path, line.port) as sender:
            sender.note(EVENTS // 2)
            sender.journal.writer.flush(20)
            before_mb = resident_mb_here()
            sender.note(EVENTS // 2)
            assert sender.journal.writer.flush(60)
            grown_mb = resident_mb_here() - before_mb
            broker.up()
            with Backend(broker.port) as backend:
                returned_s = time.monotonic()
                wait_until(lambda: set(numbers(backend)) >= set(range(EVENTS)), timeout_s=90)
                drained_s = time.monotonic() - returned_s
                for behaviour in ("silent", "slow"):
                    line.behaviour = behaviour
                    sender.note(60)
                    time.sleep(0.5)
                    line.reset()
                line.behaviour = "good"
                sender.note(60)
                wait_until(lambda: set(numbers(backend)) >= set(range(sender.noted)), timeout_s=90)
                first_seen = list(dict.fromkeys(numbers(backend)))
                wait_until(lambda: sender.journal.writer.health().waiting == 0, timeout_s=60)
        line.close()
    assert first_seen == sorted(first_seen)
    assert grown_mb < 10
    assert sender.slowest_s < 5.0  # a publisher that waits for a broker would wait for ever
    note = f"{sender.noted} events, 0 lost, in order; {grown_mb:.1f} MB more memory"
    fault_row(
        29, f"no broker for {HOURS} h of events, then a silent, a slow and a cut line", state="unchanged",
        recover_s=drained_s, recover_limit_s=60.0, how="real Mosquitto behind a proxy", note=note,
    )  # fmt: skip


def resident_mb_here() -> float:
    return resident_mb(os.getpid())


def test_a_broker_that_refuses_is_named_and_not_hammered(tmp_path: Path, fault_row: FaultRow) -> None:
    (tmp_path / "secret").write_text("wrong\n")
    password = {"username": "van", "password_file": tmp_path / "secret"}
    with (
        Broker(tmp_path, "allow_anonymous false") as broker,
        sender_to(tmp_path, broker.port, **password) as sender,
    ):
        sender.note(5)
        wait_until(lambda: "authorized" in sender.trouble(), timeout_s=30)
        waiting = sender.journal.writer.health
        wait_until(lambda: waiting().waiting >= 5, timeout_s=30)
    with (
        Broker(tmp_path, *tls_lines(tmp_path, days_left=-1)) as broker,
        sender_to(tmp_path, broker.port, tls=True, ca_file=tmp_path / "ca.pem") as expired,
    ):
        wait_until(lambda: "expired" in expired.trouble(), timeout_s=30)
        told = expired.mqtt.health().detail
    with sender_to(tmp_path, free_port()) as alone:
        wait_until(lambda: "refused" in alone.trouble(), timeout_s=30)
    fault_row(
        29, "wrong password, expired certificate, nobody there", state="unchanged", how="real Mosquitto",
        note=f"each is named in health, e.g. '{told.split(': ')[-1].split(' (')[0]}'; events wait",
    )  # fmt: skip


def tls_lines(folder: Path, days_left: int) -> tuple[str, ...]:
    """A certificate of our own making for localhost; it is its own authority."""
    write_certificate(folder, days_left)
    return (
        "allow_anonymous true",
        f"certfile {folder / 'ca.pem'}",
        f"keyfile {folder / 'key.pem'}",
        f"cafile {folder / 'ca.pem'}",
    )


def write_certificate(folder: Path, days_left: int) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = SystemClock().utc()
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days_left))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(built.public_bytes(pem))
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
