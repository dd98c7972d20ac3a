"""The web server as a stranger, a browser, a scraper and a slow reader meet it."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from road_messages import blind, road

from edge_road.clock import SystemClock
from edge_road.errors import ConfigError
from edge_road.road_state import parse_message
from edge_road.runtime.outputs.web import Web
from edge_road.runtime.snapshot import write_snapshot
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput
from edge_road.web import protocol, server
from edge_road.web.sessions import Attempts

httpx = pytest.importorskip("httpx")
http = httpx.Client(timeout=30)  # one for all: each would load the certificates of the world
TOKEN = "a-long-secret"


class Served:
    def __init__(self, vehicle_file: Path | None = None, **settings: Any) -> None:
        self.asked = 0
        self.status = Status("van", "b", SystemClock())
        chosen = HttpOutput(kind="http", port=0, **settings)
        self.vehicle = Vehicle.model_validate({"vehicle": "van", "outputs": [chosen]})
        self.web = Web(chosen, self.status, lambda: self.vehicle, self._reload, vehicle_file)
        self.web.start()
        self.url = f"http://127.0.0.1:{self.web.port}"
        self.say(blind("starting", 0))
        for _ in range(1500):
            try:
                if http.get(f"{self.url}/session").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
        raise AssertionError(self.web.health())

    def say(self, message: Any, valid_for_ms: int = 600_000) -> None:
        message = message.model_copy(update={"valid_for_ms": valid_for_ms})
        line = message.to_json()
        self.status.published(message, line)
        self.web.publish(message, line)

    def forgive(self) -> None:
        self.web._guard._attempts = Attempts(SystemClock())

    def _reload(self) -> None:
        self.asked += 1


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("token") / "token"
    path.write_text(TOKEN + "\n")
    server = Served(token_file=path, clients=3)
    yield server
    server.web.close(2)


def test_the_newest_state_is_served_as_it_was_published(served: Served) -> None:
    served.say(road("icy", 7))
    answer = http.get(f"{served.url}/state")
    assert parse_message(answer.content).state == "icy"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_health_and_metrics_tell_the_same(served: Served) -> None:
    served.say(road("wet", 8))
    health = http.get(f"{served.url}/health").json()
    assert (health["alive"], health["state"]) == (True, "wet")
    metrics = http.get(f"{served.url}/metrics").text
    assert 'edge_road_state{state="wet"} 1.0' in metrics
    assert 'edge_road_state{state="icy"} 0.0' in metrics


def test_labels_of_metrics_come_from_a_bounded_list(served: Served) -> None:
    for number in range(300):
        served.status.published(blind(f"made_up_{number}", number), "")
    served.say(road("dry", 9))
    lines = http.get(f"{served.url}/metrics").text.splitlines()
    assert len([line for line in lines if line.startswith("edge_road_reasons_total{")]) <= 64


def test_the_stream_begins_with_the_newest_state_and_goes_on(served: Served) -> None:
    served.say(road("dry", 10))
    with http.stream("GET", f"{served.url}/events", timeout=10) as answer:
        lines = answer.iter_lines()
        assert (next(lines), json.loads(next(lines)[6:])["seq"]) == ("event: state", 10)
        served.say(road("icy", 11))
        served.web.publish_event(json.dumps({"utc": "t", "kind": "state", "details": {"state": "icy"}}))
        names = []
        for line in lines:
            names += [line[7:]] if line.startswith("event: ") else []
            if "event" in names:
                break
        assert {"health", "state", "event"} <= set(names)


def test_a_state_that_has_become_old_is_not_served_as_the_newest(served: Served) -> None:
    """As when the supervisor hangs: who asks now counts the validity from now."""
    served.say(road("dry", 13), valid_for_ms=1)
    time.sleep(0.01)
    assert http.get(f"{served.url}/state").status_code == 503
    with http.stream("GET", f"{served.url}/events", timeout=10) as answer:
        assert next(answer.iter_lines()) == "event: health"
    served.say(road("dry", 14))


def test_an_unchanged_state_is_told_again_before_it_is_stale(served: Served) -> None:
    reader = served.web._hub.join(lambda: None)
    assert reader is not None
    for seq in range(20, 60):
        served.say(road("dry", seq), valid_for_ms=100)
        time.sleep(0.02)
    served.web._hub.leave(reader)
    served.say(road("dry", 60))
    assert len(reader.take()) >= 5


def test_the_house_can_be_full_and_empties_again(served: Served) -> None:
    with contextmanager(streams)(served, 3):
        assert http.get(f"{served.url}/events").status_code == 503
        assert http.get(f"{served.url}/state").status_code == 200
    for _ in range(300):
        if served.web._hub.readers == 0:
            return
        served.say(road("dry", 12))
        time.sleep(0.02)
    raise AssertionError("readers who left are still counted")


def streams(served: Served, count: int) -> Iterator[None]:
    channels = [open_stream(served) for _ in range(count)]
    for _ in range(500):
        if served.web._hub.readers == count:
            break
        time.sleep(0.02)
    yield
    for channel in channels:
        channel.close()


def open_stream(served: Served, head: str = "Host: localhost") -> socket.socket:
    channel = socket.create_connection(("127.0.0.1", served.web.port))
    channel.sendall(f"GET /events HTTP/1.1\r\n{head}\r\n\r\n".encode())
    return channel


def test_a_reader_that_stands_still_loses_its_oldest_and_costs_the_publisher_nothing(
    served: Served,
) -> None:
    with contextmanager(streams)(served, 1):
        slowest_s = max(timed(served, number) for number in range(3000))
    assert served.web._hub.lost > 0
    assert slowest_s < 5.0  # a blocked publisher would wait for ever


def test_the_place_of_a_reader_that_takes_nothing_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phone out of reach, a laptop asleep: nobody closes these connections."""
    monkeypatch.setattr(server, "GONE_S", 1.0)
    served = Served(clients=1)
    with contextmanager(streams)(served, 1):
        for number in range(20_000):
            served.say(road(("dry", "wet")[number % 2], number))
            if served.web._hub.readers == 0:
                break
            time.sleep(0.001)
        assert served.web._hub.readers == 0
    served.web.close(1.0)


def timed(served: Served, number: int) -> float:
    began_s = time.monotonic()
    served.say(road(("dry", "wet")[number % 2], number))
    return time.monotonic() - began_s


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:abc", "[::1", "a" * 300]
)
def test_another_host_name_is_refused(served: Served, host: str) -> None:
    """DNS rebinding: a stranger's name that points at us."""
    assert http.get(f"{served.url}/state", headers={"Host": host}).status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8770"])
def test_our_own_names_are_served(served: Served, host: str) -> None:
    assert http.get(f"{served.url}/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "file://", "http://[", "javascript:1"])
def test_another_site_is_refused_even_with_the_token(served: Served, origin: str) -> None:
    headers = {"Origin": origin, "Authorization": f"Bearer {TOKEN}"}
    assert http.post(f"{served.url}/reload", headers=headers).status_code == 403
    assert http.get(f"{served.url}/state", headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize("shown", [None, "Bearer wrong", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x"])
def test_nothing_is_changed_without_the_token(served: Served, shown: str | None) -> None:
    before = served.asked
    headers = {} if shown is None else {"Authorization": shown}
    for path in ("/reload", "/logout", "/setup", "/setup/preview", "/state"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            served.forgive()
            assert http.request(method, served.url + path, headers=headers).status_code == 401
    assert served.asked == before


def test_the_token_opens_what_it_should(served: Served) -> None:
    served.forgive()
    before = served.asked
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert http.post(f"{served.url}/reload", headers=headers).status_code == 202
    assert served.asked == before + 1
    assert http.post(f"{served.url}/smoke", headers=headers).status_code == 409  # there is no bundle


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/snapshot.jpg/../../etc/passwd",
        "/index.html%00.jpg",
        "/....//etc/passwd",
        "//etc/passwd",
        "/web_app.py",
    ],
)
def test_no_path_leads_out_of_the_page(served: Served, path: str) -> None:
    with socket.create_connection(("127.0.0.1", served.web.port)) as channel:
        channel.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: channel.recv(65536), b""))
    assert answer.split()[1] in (b"404", b"400")
    assert b"root:" not in answer


def test_the_page_and_its_files_are_served(served: Served) -> None:
    answer = http.get(served.url + "/")
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_without_a_picture_there_is_no_content(served: Served) -> None:
    assert http.get(f"{served.url}/snapshot.jpg").status_code == 204


def test_who_does_not_finish_a_request_is_shown_out(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_S", 0.3)
    with socket.create_connection(("127.0.0.1", served.web.port)) as channel:
        channel.settimeout(10)
        channel.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
        assert channel.recv(100) == b""


def test_a_huge_head_and_a_huge_body_are_refused(served: Served) -> None:
    for attack in (
        b"GET /state HTTP/1.1\r\nX: " + b"a" * 100_000,
        b"POST /reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n" + b"{" * 900_000,
    ):
        with socket.create_connection(("127.0.0.1", served.web.port)) as channel:
            channel.settimeout(10)
            try:
                channel.sendall(attack)
                answer = channel.recv(100)
            except OSError:
                answer = b""
            assert answer == b"" or answer.split()[1] in (b"400", b"401", b"431")
    assert http.get(f"{served.url}/state").status_code == 200


def test_an_open_address_needs_a_token() -> None:
    with pytest.raises(ValidationError, match="token_file"):
        HttpOutput(kind="http", host="0.0.0.0")


def test_beyond_the_loopback_even_reading_needs_the_token(tmp_path: Path) -> None:
    from edge_road.web.guard import Guard

    settings = HttpOutput(kind="http", host="0.0.0.0", token_file=tmp_path / "t", names=("van-7.local",))
    guard = Guard(settings, TOKEN)
    head = {"host": "van-7.local:8770"}
    assert guard.refusal("GET", "/state", head).status == 401  # type: ignore[union-attr]
    assert guard.refusal("GET", "/state", {**head, "authorization": f"Bearer {TOKEN}"}) is None


def test_a_port_that_is_taken_is_a_config_error(served: Served) -> None:
    with pytest.raises(ConfigError, match="address"):
        Web(HttpOutput(kind="http", port=served.web.port), served.status, Vehicle, lambda: None)


def test_it_ends_quickly_even_with_readers(served: Served) -> None:
    other = Served()
    channel = open_stream(other)
    began_s = time.monotonic()
    other.web.close(2)
    other.say(road("dry", 1))  # a late message finds nobody and harms nobody
    assert time.monotonic() - began_s < 10  # with a reader that it waits for it would be for ever
    channel.close()


CROP = {"left": 0.1, "top": 0.5, "right": 0.9, "bottom": 1.0}
LOWER_HALF = {"region": "road", "crop": CROP}


@pytest.fixture
def set_up(tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    (tmp_path / "token").write_text(TOKEN)
    vehicle_file = tmp_path / "van.toml"
    vehicle_file.write_text('vehicle = "van"  # ours\n')
    server = Served(vehicle_file, token_file=tmp_path / "token")
    yield server, vehicle_file
    server.web.close(2)


def ask(served: Served, path: str, change: Any, token: str = TOKEN) -> Any:
    return http.post(served.url + path, json=change, headers={"Authorization": f"Bearer {token}"})


def test_a_new_crop_is_shown_first_then_written_with_a_back_up_and_taken_up(
    set_up: tuple[Served, Path],
) -> None:
    served, vehicle_file = set_up
    old = vehicle_file.read_text()
    shown = ask(served, "/setup/preview", LOWER_HALF)
    assert (shown.status_code, vehicle_file.read_text(), served.asked) == (200, old, 0)
    assert "+crop = { left = 0.100, top = 0.500, right = 0.900, bottom = 1.000 }" in shown.json()["change"]
    written = ask(served, "/setup", LOWER_HALF)
    assert (written.status_code, served.asked) == (200, 1)
    assert vehicle_file.read_text().startswith(old)
    assert (vehicle_file.parent / written.json()["backup"]).read_text() == old


@pytest.mark.parametrize(
    "change",
    [
        {},
        [],
        {"crop": {"left": 0.9, "right": 0.1}},
        {"crop": {"top": -1}},
        {"crop": {"left": 0.5, "right": 0.51}},
        {"crop": {}, "region": "../../etc"},
        {"crop": {}, "path": "/etc/passwd"},
        {"crop": {}, "region": "r" * 5000},
    ],
)
def test_a_crop_that_makes_no_sense_is_refused_and_nothing_is_written(
    set_up: tuple[Served, Path], change: Any
) -> None:
    served, vehicle_file = set_up
    old = vehicle_file.read_text()
    assert ask(served, "/setup", change).status_code == 422
    assert (vehicle_file.read_text(), served.asked) == (old, 0)
    assert not vehicle_file.with_name("van.toml.bak").exists()


def test_without_the_token_the_vehicle_file_stays(set_up: tuple[Served, Path]) -> None:
    served, vehicle_file = set_up
    old = vehicle_file.read_text()
    assert ask(served, "/setup", LOWER_HALF, token="wrong").status_code == 401
    assert vehicle_file.read_text() == old


def test_a_daemon_without_a_vehicle_file_says_so(served: Served) -> None:
    assert ask(served, "/setup", LOWER_HALF).status_code == 409


def test_the_page_tells_the_crop_of_now(served: Served) -> None:
    before = served.vehicle
    assert http.get(f"{served.url}/about").json()["regions"] == []
    served.vehicle = before.model_validate(
        {**before.model_dump(), "regions": [{"name": "road", "crop": CROP}]}
    )
    assert http.get(f"{served.url}/about").json()["regions"] == [{"name": "road", **CROP}]
    served.vehicle = before


def test_a_page_that_is_opened_late_learns_what_it_missed(served: Served) -> None:
    served.web.publish_event(json.dumps({"utc": "t", "kind": "state", "details": {"state": "icy"}}))
    for _ in range(500):
        told = http.get(f"{served.url}/history").json()
        if told["events"]:
            break
        time.sleep(0.02)
    assert (told["events"][-1]["state"], told["events"][-1]["picture"]) == ("icy", None)
    ago_s, state, shares = told["samples"][0]
    assert (ago_s >= 0, state, shares) == (True, "unknown", None)
    assert http.get(f"{served.url}/pictures/1.jpg").status_code == 204


def test_an_unchanged_state_comes_a_few_times_a_second_and_a_changed_one_at_once(served: Served) -> None:
    with http.stream("GET", f"{served.url}/events", timeout=30) as answer:
        lines = answer.iter_lines()
        next(lines)
        for seq in range(1000, 1100):
            served.say(road("wet", seq))
        served.say(road("icy", 2000))
        seqs = []
        for line in lines:
            seqs += [json.loads(line[6:])["seq"]] if line.startswith('data: {"schema') else []
            if seqs and seqs[-1] == 2000:
                break
    assert len(seqs) < 60, "a hundred messages in an instant are not a hundred for a page"


def test_the_last_self_test_is_told_to_everybody(served: Served) -> None:
    assert http.get(f"{served.url}/smoke").json() == {"running": False, "newest": None}


def test_without_pictures_nothing_is_told_of_their_parts(served: Served) -> None:
    assert http.get(f"{served.url}/parts").json() == {"regions": [], "seconds": 0.0}


def test_where_pictures_are_off_there_is_no_live_picture(served: Served) -> None:
    assert http.get(f"{served.url}/camera").status_code == 204


def test_the_live_picture_is_what_the_worker_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    write_snapshot(tmp_path / "van.jpg", b"a jpeg")
    server = Served(snapshots=True)
    with http.stream("GET", f"{server.url}/camera") as answer:
        parts = answer.iter_raw()
        seen = b""
        while len(seen) < 10:
            seen += next(parts)
    server.web.close(2)
    assert seen == b"\0\0\0\6a jpeg"
