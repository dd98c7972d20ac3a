"""Rows 28, 33 to 36 and 38: a daemon attacked on every interface goes on and gives nothing away.

Its camera wants a password, its event store is rubbish, its web server has a token, and its broker and its
unix socket carry whatever anybody likes to send.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from camera_servers import HttpCamera, wait_until
from daemon_harness import Daemon, resident_mb
from fault_rows import FaultRow
from mosquitto import Backend, Broker

pytest.importorskip("starlette")
TOKEN, PASSWORD = "pl4nted-token", "pl4nted-password"
READING = ("/", "/state", "/health", "/about", "/metrics", "/openapi.json", "/snapshot.jpg")
WRITING = ("/reload", "/smoke", "/setup", "/setup/preview")
STRANGERS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "0.0.0.0", "", "a" * 300)
SITES = ("http://evil.example", "null", "file://", "http://[", "https://localhost.evil.example")
WAYS_UP = (
    "..",
    "%2e%2e",
    "..%2f..",
    "%2e%2e%2f%2e%2e",
    "....//..",
    "..\\..",
    "%252e%252e",
    "..;",
    "\u002e\u002e/..",
)
TARGETS = ("etc/passwd", "etc%2fpasswd", "proc/self/environ", "token", "vehicle.toml", "events.sqlite")
NOISE = (
    b"", b"null", b"[]", b"{}", b"[" * 4000, b'{"a":' * 800, b"\xff\xfe\x00", b"\x00" * 100, b"x" * 100_000,
    b'{"speed_mps": NaN}', b'{"speed_mps": 1e999}', b'{"speed_mps": 1' + b"0" * 400 + b"}",
    b'{"speed_mps": "13"}', b'{"speed_mps": true}', b'{"speed_mps": -1e9}', b'{"speed_mps": [1]}',
    b'{"speed_mps": 1, "speed": 2}', b'{"ambient_c": 4000}', b'{"reload": true}', b'{"cmd": "reboot"}',
    b'{"position": {"latitude": 91, "longitude": 0}}',
    b'{"position": {"latitude": 1, "longitude": 1, "__class__": "x"}}',
    b'{"boot_id": "b", "up_to_seq": -1}', b'{"boot_id": "b", "up_to_seq": 1e18}',
    b'{"boot_id": {}, "up_to_seq": 1}',
    b'{"\\u001b[2J\\r\\n{\\"level\\": \\"forged\\"}": 1}', b"\x1b]0;owned\x07\x1b[2J\r\nforged line",
    b"rtsp://admin:pl4nted-payload@camera/\n", b"token=pl4nted-payload\r\n", "\u2028\u202eforged".encode(),
)  # fmt: skip


@pytest.fixture
def camera() -> Iterator[HttpCamera]:
    found = HttpCamera()
    yield found
    found.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(tmp_path) as found:
        yield found


def test_a_daemon_attacked_on_every_interface_goes_on_and_gives_nothing_away(
    tmp_path: Path, camera: HttpCamera, broker: Broker, fault_row: FaultRow
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "events.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(range(256)) * 64)
    with (
        Daemon(tmp_path, vehicle=vehicle(tmp_path, camera, broker)) as daemon,
        Backend(broker.port) as backend,
    ):
        daemon.wait_for_state("dry", timeout_s=60)
        port = web_port(daemon)
        store_is_replaced(tmp_path, backend, fault_row)
        before_mb, series = resident_mb(daemon.process.pid), count_series(port)
        nothing_is_changed_or_read_by_strangers(port, fault_row)
        no_path_leads_out(port, fault_row)
        slow_and_greedy_clients_starve_nobody(port, series, fault_row)
        hostile_payloads_change_nothing(tmp_path, daemon, backend, fault_row)
        grown_mb = resident_mb(daemon.process.pid) - before_mb
        since_s = time.monotonic()
        daemon.wait_for_state("dry", since_s=since_s)
        assert daemon.stop() == 0
    assert grown_mb < 20
    assert {m.state for m in daemon.messages} <= {"dry", "unknown"}
    assert [m.seq for m in daemon.messages] == list(range(len(daemon.messages)))
    logs_are_clean(daemon, backend, fault_row)


def vehicle(folder: Path, camera: HttpCamera, broker: Broker) -> dict[str, object]:
    http = {"kind": "http", "port": 0, "token_file": str(folder / "token"), "clients": 4}
    mqtt = {"kind": "mqtt", "port": broker.port, "inputs": True, "delivery": "backend_ack", "resend_s": 1.0}
    unix = {"kind": "unix_socket", "path": str(folder / "road.sock"), "inputs": True}
    url = f"http://admin:{PASSWORD}@127.0.0.1:{camera.port}/road.mjpg"
    return {
        "vehicle": "test",
        "backend": "fake",
        "source": {"kind": "mjpeg", "url": url, "fps": 20},
        "quality": {"obstructed_s": 0.0},
        "outputs": [{"path": "-"}, http, mqtt, unix],
        "events": {"path": str(folder / "events.sqlite")},
    }


def web_port(daemon: Daemon) -> int:
    wait_until(lambda: "http://127.0.0.1:" in daemon.stderr, timeout_s=30)
    port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", daemon.stderr)[-1])
    wait_until(lambda: answers(port), timeout_s=30)
    return port


def answers(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/state").status_code == 200
    return False


def store_is_replaced(folder: Path, backend: Backend, fault_row: FaultRow) -> None:
    events: list[dict[str, object]] = []

    def told() -> bool:
        events[:] = [json.loads(payload) for payload in backend.of("events")]
        return any("storage_damaged" in str(event["details"]) for event in events)

    wait_until(told, timeout_s=30)
    assert (folder / "events.sqlite.damaged-1").exists()
    assert any(event["kind"] == "boot" for event in events)
    note = "moved aside, a new store, an event about it"
    fault_row(
        28, "the daemon starts on a store of rubbish", state="unchanged", how="a file of 4 kB", note=note
    )


def ask(port: int, method: str, path: str, **headers: str) -> int:
    """Over a raw socket, because a client library would tidy up what an attacker would not."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **headers}.items())
    return int(
        answer(port, f"{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode()).split()[1]
    )


def answer(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as channel:
        channel.sendall(request)
        return b"".join(iter(lambda: channel.recv(65536), b""))


def nothing_is_changed_or_read_by_strangers(port: int, fault_row: FaultRow) -> None:
    control = [
        ask(port, method, path) for method in ("POST", "PUT", "DELETE") for path in (*READING, *WRITING)
    ]
    shown = ("Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", f"bearer  {TOKEN[:-1]}")
    control += [ask(port, "POST", "/reload", Authorization=text) for text in shown]
    assert set(control) <= {401, 429}
    rebound = [ask(port, "GET", path, Host=host) for host in STRANGERS for path in READING]
    assert set(rebound) <= {400, 421}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    crossed = [ask(port, "POST", "/reload", Origin=site, **bearer) for site in SITES]
    crossed += [ask(port, "GET", "/state", Origin=site) for site in SITES]
    assert set(crossed) == {403}
    note = (
        f"{len(control)} writes without the token, {len(rebound)} for other hosts, {len(crossed)} from sites"
    )
    fault_row(
        33, "writes without the token, foreign Host and Origin", state="unchanged", how="raw HTTP",
        note=f"{note}: all refused",
    )  # fmt: skip


def no_path_leads_out(port: int, fault_row: FaultRow) -> None:
    paths = [f"/{up}/{target}" for up in WAYS_UP for target in TARGETS]
    paths += [f"/page.css/{up}/{target}" for up in WAYS_UP[:3] for target in TARGETS]
    paths += ["/index.html%00.jpg", "//etc/passwd", "/web_app.py", "/token", "/%00", "/token%0a"]
    for path in paths:
        said = answer(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert said.split()[1] in (b"404", b"400"), path
        assert b"root:" not in said, path
        assert TOKEN.encode() not in said, path
    fault_row(
        34, "paths with .., encodings, NUL and backslashes", state="unchanged", how="raw HTTP",
        note=f"{len(paths)} paths, none leads out",
    )  # fmt: skip


def count_series(port: int) -> int:
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    return sum(1 for line in lines if line.startswith("edge_road_"))


def slow_and_greedy_clients_starve_nobody(port: int, series: int, fault_row: FaultRow) -> None:
    """Sixty clients that never finish their request, four that hold all places of the stream."""
    slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(60)]
    greedy = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(4)]
    for channel in slow:
        channel.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
    for channel in greedy:
        channel.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers = {
        ask(port, "GET", f"/metrics?vehicle={number}&reason=made_up_{number}") for number in range(200)
    }
    assert answers == {200}
    wait_until(lambda: httpx.get(f"http://127.0.0.1:{port}/events").status_code == 503)
    now = count_series(port)
    assert series <= now <= series + 12, "labels grow with what clients send, or others are not served"
    for channel in slow:
        with suppress(ConnectionError):
            assert channel.recv(100) == b"", "a request that was never finished was answered"
        channel.close()
    for channel in greedy:
        channel.close()
    note = f"60 slow clients shown out, 4 hold the stream, others served; {series} series before, {now} after"
    fault_row(38, "slow clients and made-up labels", state="unchanged", how="raw HTTP", note=note)


def hostile_payloads_change_nothing(
    folder: Path, daemon: Daemon, backend: Backend, fault_row: FaultRow
) -> None:
    with socket.socket(socket.AF_UNIX) as local:
        local.connect(str(folder / "road.sock"))
        for payload in NOISE:
            for topic in ("inputs", "ack", "state", "events", "reload"):
                backend.client.publish(f"edge_road/test/{topic}", payload, qos=1)
            local.sendall(payload.replace(b"\n", b" ") + b"\n")
        backend.client.publish("edge_road/test/inputs", b'{"speed_mps": 33}', qos=1, retain=True)
        time.sleep(0.3)
        assert all(m.speed_mps in (None, 33.0) for m in daemon.messages)
        since_s = time.monotonic()
        local.sendall(b'{"speed_mps": 11}\n')
        daemon.wait_for(lambda m: m.speed_mps == 11.0, since_s=since_s)
    since_s = time.monotonic()
    backend.client.publish("edge_road/test/inputs", b'{"speed_mps": 7}', qos=1)
    daemon.wait_for(lambda m: m.speed_mps == 7.0, since_s=since_s)
    note = f"{len(NOISE)} payloads on five topics and on the socket ignored; the next good one is taken"
    fault_row(
        36, "huge, deep, foreign and forged payloads", state="unchanged", how="real Mosquitto", note=note
    )


def logs_are_clean(daemon: Daemon, backend: Backend, fault_row: FaultRow) -> None:
    lines = [json.loads(line) for line in daemon.stderr.splitlines()]
    assert all({"time", "level", "message"} <= set(line) for line in lines)
    written = daemon.stderr + "".join(m.to_json() for m in daemon.messages)
    ours = [payload.decode() for payload in backend.of("state") if payload.startswith(b'{"schema"')]
    for text in (written, *ours):
        assert "pl4nted" not in text
    assert not any(character in written for character in "\x1b\x07\r\u2028\u202e\x00")
    assert len(lines) < 150, "an attacker fills the log"
    note = f"{len(lines)} log lines, each one JSON; no control character, no password, no token"
    fault_row(35, "control characters and secrets", state="unchanged", how="all of the above", note=note)
