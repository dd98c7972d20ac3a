"""A phone beside the car: it shows the token once; strangers, other sites and other ports get nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_web import LOWER_HALF, TOKEN, Served, open_stream

from edge_road.clock import ScriptedClock
from edge_road.runtime.vehicle_outputs import HttpOutput
from edge_road.web.guard import Guard, Refusal
from edge_road.web.sessions import AT_ONCE, SESSION_S

httpx = pytest.importorskip("httpx")
NAME = "van-7.local"


class Phone:
    """A browser: it keeps cookies, names the host that it was told, and says where a request comes from."""

    def __init__(self, served: Served, name: str = NAME) -> None:
        self._client = httpx.Client(base_url=served.url, timeout=30, verify=False)
        self.host = f"{name}:{served.web.port}"

    def ask(self, method: str, path: str, **options: Any) -> Any:
        headers = {"Host": self.host, **options.pop("headers", {})}
        if method != "GET":
            headers.setdefault("Origin", f"http://{self.host}")
        return self._client.request(method, path, headers=headers, **options)

    def sign_in(self, token: str = TOKEN) -> Any:
        answer = self.ask("POST", "/login", json={"token": token})
        if "set-cookie" in answer.headers:
            self._client.headers["Cookie"] = answer.headers["set-cookie"].split(";")[0]
        return answer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """As for a phone: an address beyond the loopback."""
    folder = tmp_path_factory.mktemp("van")
    (folder / "token").write_text(TOKEN)
    (folder / "van.toml").write_text('vehicle = "van"\n')
    server = Served(folder / "van.toml", host="0.0.0.0", names=(NAME,), token_file=folder / "token")
    yield server
    server.web.close(2)


@pytest.fixture
def served(server: Served) -> Served:
    server.forgive()
    server.asked = 0
    return server


def test_a_phone_shows_the_token_once_and_then_reads_everything(served: Served) -> None:
    phone = Phone(served)
    for path in ("/state", "/events", "/history", "/snapshot.jpg", "/about", "/page.js", "/pictures/1.jpg"):
        assert phone.ask("GET", path).status_code == 401, path
    assert phone.sign_in().status_code == 204
    for path in ("/state", "/history", "/about", "/page.js", "/"):
        assert phone.ask("GET", path).status_code == 200, path
    assert Phone(served).ask("GET", "/state").status_code == 401, "another phone has not signed in"


def test_who_has_not_signed_in_is_shown_the_way_and_no_more(served: Served) -> None:
    phone = Phone(served)
    for page in ("/", "/setup.html"):
        answer = phone.ask("GET", page)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login.html")
    for path in ("/login.html", "/login.js", "/forms.js", "/words.js", "/page.css", "/icon.svg"):
        assert phone.ask("GET", path).status_code == 200
    assert phone.ask("GET", "/session").json() == {"reads": False, "changes": False}


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(served: Served) -> None:
    cookie = Phone(served).sign_in().headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={SESSION_S}"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert "Secure" not in cookie, "a browser would not send it back over plain HTTP"


def test_through_a_tls_proxy_the_cookie_is_for_tls_only(served: Served) -> None:
    answer = Phone(served).ask("POST", "/login", json={"token": TOKEN}, headers={"Origin": f"https://{NAME}"})
    assert answer.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    "origin",
    [None, "http://van-7.local", "http://van-7.local:9999", "http://evil.example", "null", "http://"],
)
def test_a_cookie_changes_nothing_unless_this_very_page_asks(served: Served, origin: str | None) -> None:
    """Cookies of a host go to all of its ports, and Strict is about sites, not about origins."""
    phone = Phone(served)
    phone.sign_in()
    shown = {"Origin": origin} if origin is not None else {"Origin": ""}
    for path in ("/setup", "/setup/preview", "/reload", "/smoke", "/logout"):
        assert phone.ask("POST", path, json=LOWER_HALF, headers=shown).status_code == 403, path
    assert served.asked == 0


def test_with_a_session_this_very_page_may_change_the_crop(served: Served) -> None:
    phone = Phone(served)
    phone.sign_in()
    assert phone.ask("POST", "/setup", json=LOWER_HALF).status_code == 200
    assert served.asked == 1


def test_the_token_in_a_header_still_works_for_programs(served: Served) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert Phone(served).ask("GET", "/state", headers=headers).status_code == 200
    assert Phone(served).ask("POST", "/reload", headers=headers).status_code == 202


def test_a_wrong_header_is_not_saved_by_a_cookie(served: Served) -> None:
    phone = Phone(served)
    phone.sign_in()
    assert phone.ask("GET", "/state", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_after_signing_out_the_cookie_is_worth_nothing(served: Served) -> None:
    phone = Phone(served)
    phone.sign_in()
    gone = phone.ask("POST", "/logout")
    assert (gone.status_code, "Max-Age=0" in gone.headers["set-cookie"]) == (204, True)
    assert phone.ask("GET", "/state").status_code == 401


def test_guessing_is_slowed_down_for_the_guesser_even_when_the_guess_is_right(served: Served) -> None:
    phone = Phone(served)
    signed_in = Phone(served)
    signed_in.sign_in()
    for number in range(AT_ONCE):
        assert phone.sign_in(f"guess {number}").status_code == 401
    answer = phone.sign_in()
    assert (answer.status_code, int(answer.headers["retry-after"]) > 0) == (429, True)
    assert phone.ask("GET", "/state", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 429
    assert signed_in.ask("GET", "/state").status_code == 200, "who has signed in is not shut out"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"token":1}',
        b'{"token":null}',
        b"\xff",
        b"[" * 3000,
        b'{"token":"' + b"x" * 5000 + b'"}',
    ],
)
def test_nonsense_is_no_token(served: Served, body: bytes) -> None:
    answer = Phone(served).ask("POST", "/login", content=body)
    assert answer.status_code == 422
    assert b"xx" not in answer.content


def test_the_token_is_in_no_answer_and_in_no_log(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    phone = Phone(served)
    answers = [
        phone.sign_in("not-" + TOKEN),
        phone.sign_in(),
        phone.ask("GET", "/about"),
        phone.ask("GET", "/health"),
    ]
    logged = [r.getMessage() for r in caplog.records if not r.name.startswith("httpcore")]
    assert not any(TOKEN in text for text in [*logged, *(answer.text for answer in answers)])


def test_signing_in_from_another_site_or_name_is_refused(served: Served) -> None:
    phone = Phone(served)
    assert (
        phone.ask(
            "POST", "/login", json={"token": TOKEN}, headers={"Origin": "http://evil.example"}
        ).status_code
        == 403
    )
    assert Phone(served, "evil.example").sign_in().status_code == 421


def test_a_stream_ends_with_its_session(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from edge_road.runtime.outputs import web_stream

    monkeypatch.setattr(web_stream, "HEALTH_EVERY_S", 0.05)
    phone = Phone(served)
    phone.sign_in()
    cookie = phone._client.headers["Cookie"]
    with open_stream(served, f"Host: {phone.host}\r\nCookie: {cookie}") as channel:
        channel.settimeout(30)
        assert b"event: health" in read_until(channel, b"event: health")
        phone.ask("POST", "/logout")
        read_until(channel, b"0\r\n\r\n")  # the end of a chunked answer


def read_until(channel: Any, wanted: bytes) -> bytes:
    content = b""
    while wanted not in content:
        part = channel.recv(65536)
        assert part, content
        content += part
    return content


def test_a_name_for_a_proxy_is_not_open_to_everybody(tmp_path: Path) -> None:
    """A TLS proxy on the same machine comes from the loopback, but asks for another host."""
    guard = Guard(HttpOutput(kind="http", names=(NAME,), token_file=tmp_path / "t"), TOKEN)
    assert guard.refusal("GET", "/state", {"host": "localhost"}) is None
    refusal = guard.refusal("GET", "/state", {"host": NAME})
    assert refusal is not None
    assert refusal.status == 401


def test_a_session_ends_by_itself(tmp_path: Path) -> None:
    clock = ScriptedClock()
    guard = Guard(
        HttpOutput(kind="http", host="0.0.0.0", names=(NAME,), token_file=tmp_path / "t"), TOKEN, clock
    )
    cookie = guard.log_in(TOKEN, {}, "10.0.0.5")
    assert isinstance(cookie, str)
    head = {"host": NAME, "cookie": f"other=1; {cookie.split(';')[0]}"}
    assert guard.refusal("GET", "/state", head) is None
    clock.sleep(SESSION_S)
    assert guard.refusal("GET", "/state", head) is not None
    assert not guard.goes_on(head)


def test_without_a_token_file_nobody_signs_in() -> None:
    refusal = Guard(HttpOutput(kind="http"), None).log_in("", {}, "127.0.0.1")
    assert isinstance(refusal, Refusal)
    assert refusal.status == 409
