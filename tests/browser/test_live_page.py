"""The live page in a real browser, beside a real daemon."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from daemon_harness import Daemon, crowding, pattern_vehicle, retried_on_a_busy_machine
from tiny_bundle import write_tiny_bundle

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

TOKEN = "a-token-for-tests"
PAGE_BYTES = 150_000
PATIENCE_S = 60.0
"""for whatever has no deadline of its own, on a machine that others use too"""
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def vehicle_with_page(
    folder: Path, port: int, *segments: tuple[str, float], **settings: Any
) -> dict[str, Any]:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    vehicle = pattern_vehicle(*segments)
    page = {"kind": "http", "port": port, "token_file": str(token), "snapshots": True, **settings}
    return {**vehicle, "outputs": [{"kind": "json_lines", "path": "-"}, page]}


class Visit:
    """A browser window on the page, and everything that went wrong in it."""

    def __init__(self, page: Any, port: int, name: str) -> None:
        self.page, self.home = page, f"http://{name}:{port}/"
        self.errors: list[str] = []
        self.urls: list[str] = []
        self.received_bytes = 0
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.urls.append(request.url))

    def open(self, path: str = "") -> None:
        """The daemon may say its first state before it serves the page."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.page.goto(self.home + path)
                return
            except sync_api.Error as error:
                if "ERR_CONNECTION_REFUSED" not in str(error) or time.monotonic() > end_s:
                    raise
                time.sleep(0.1)

    def sign_in(self, token: str = TOKEN) -> None:
        self.page.fill("#token", token)
        self.page.click("button")

    def wait_for_text(self, selector: str, text: str, timeout_s: float = PATIENCE_S) -> float:
        self.page.wait_for_function(
            "([where, text]) => document.querySelector(where)?.textContent.includes(text)",
            arg=[selector, text],
            timeout=1000 * timeout_s,
            polling=50,
        )
        return time.monotonic()


@contextmanager
def visiting(
    port: int, viewport: dict[str, int] = DESK, name: str = "127.0.0.1", **options: Any
) -> Iterator[Visit]:
    names = f"--host-resolver-rules=MAP {name} 127.0.0.1"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", names])
        try:
            page = browser.new_context(viewport=viewport, locale="en-GB", **options).new_page()
            page.set_default_timeout(1000 * PATIENCE_S)
            yield Visit(page, port, name)
        except sync_api.TimeoutError as error:  # a promise of the page that was not kept
            raise AssertionError(str(error)) from error
        finally:
            browser.close()


def test_the_page_loads_without_errors_and_asks_nobody_else(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("dry", 600.0))) as daemon:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open()
            visit.wait_for_text("#name", "dry")
            visit.wait_for_text("#health", "up s")
            visit.page.wait_for_selector("#picture:not([hidden])")
            assert all(url.startswith((visit.home, "blob:")) for url in visit.urls), visit.urls
            assert visit.errors == []
            weights = visit.page.evaluate(
                "performance.getEntriesByType('resource').filter((e) => /(html|js|css|svg)$/.test(e.name))"
                ".reduce((sum, e) => sum + e.decodedBodySize, 0)"
            )
            assert 0 < weights <= PAGE_BYTES


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone", "desk"])
def test_everybody_can_read_it(tmp_path: Path, viewport: dict[str, int], scheme: str) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("icy", 600.0))) as daemon:
        daemon.wait_for_state("icy", timeout_s=PATIENCE_S)
        with visiting(port, viewport, color_scheme=scheme) as visit:
            for path, ready in (
                ("", "#events img"),
                ("setup.html", "#picture:not([hidden])"),
                ("login.html", "#token"),
            ):
                visit.open(path)
                visit.page.wait_for_selector(ready)
                found = axe.Axe().run(visit.page).response["violations"]
                serious = [
                    (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")
                ]
                assert serious == [], path
                width = visit.page.evaluate("document.documentElement.scrollWidth")
                assert width <= viewport["width"], f"something is cut off at the right of {path}"


@retried_on_a_busy_machine
def test_a_change_of_the_road_is_seen_within_a_second(tmp_path: Path) -> None:
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("dry", 12.0), ("icy", 600.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon, visiting(port) as visit:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        visit.open()
        visit.wait_for_text("#name", "dry")
        shown_s = visit.wait_for_text("#name", "icy")
        said_s = daemon.wait_for_state("icy", timeout_s=PATIENCE_S)
        assert shown_s - said_s <= 1.0 * crowding()


@retried_on_a_busy_machine
def test_a_dead_daemon_is_stale_within_two_seconds_and_a_new_one_is_found(tmp_path: Path) -> None:
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("wet", 600.0))
    with visiting(port) as visit:
        with Daemon(tmp_path, vehicle=vehicle) as daemon:
            daemon.wait_for_state("wet", timeout_s=PATIENCE_S)
            visit.open()
            visit.wait_for_text("#name", "wet")
            first = visit.page.get_attribute("#events img", "src")
            daemon.process.kill()
            killed_s = time.monotonic()
            stale_s = visit.wait_for_text("#reason", "no message")
            assert stale_s - killed_s <= 2.0 * crowding()
            assert visit.page.text_content("#name") == "unknown"
            visit.page.wait_for_selector("#picture", state="hidden")
            visit.page.wait_for_function("() => !document.querySelector('#health tr')")
        with Daemon(tmp_path, vehicle=vehicle) as daemon:
            daemon.wait_for_state("wet", timeout_s=PATIENCE_S)
            visit.wait_for_text("#name", "wet")
            other_picture = (
                "(first) => ![null, first].includes(document.querySelector('#events img')?.src ?? null)"
            )
            visit.page.wait_for_function(other_picture, arg=first)


def test_the_timeline_shows_nothing_for_a_time_of_silence(tmp_path: Path) -> None:
    seen_at_minutes = """async (minutes) => {
      const { draw, remember } = await import("/history.js?of_its_own");
      const canvas = document.getElementById("history"), now = 1e12, seconds = 1000;
      for (let ago = 480; ago > 420; ago -= 1) remember(now - ago * seconds, "icy", { icy: 1 });
      for (let ago = 120; ago > 60; ago -= 1) remember(now - ago * seconds, "icy", { icy: 1 });
      draw(canvas, now, {});
      const pen = canvas.getContext("2d"), place = (ago) => canvas.width * (1 - ago / 10);
      return minutes.map((ago) => pen.getImageData(place(ago), canvas.height - 9, 1, 1).data[3] > 0);
    }"""
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("dry", 600.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon, visiting(port) as visit:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        visit.open("setup.html")
        visit.page.evaluate("document.body.innerHTML = '<canvas id=history></canvas>'")
        assert visit.page.evaluate(seen_at_minutes, [7.5, 5.0, 1.5, 0.5]) == [True, False, True, False]


def table_names(visit: Visit) -> set[str]:
    names = "cells => cells.map((cell) => cell.textContent)"
    return set(visit.page.eval_on_selector_all("#health td:first-child, #about td:first-child", names))


def test_the_page_speaks_german_and_french(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("wet", 600.0))) as daemon:
        daemon.wait_for_state("wet", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open()
            visit.wait_for_text("#events", "state wet")
            visit.wait_for_text("#about", "boot")
            visit.wait_for_text("#health", "up s")
            english = table_names(visit)
            for code, word, said in (("de", "nass", "Straße nass"), ("fr", "mouillée", "route mouillée")):
                visit.page.select_option("#language", code)
                visit.wait_for_text("#name", word)
                assert visit.page.get_attribute("html", "lang") == code
                visit.wait_for_text("#events", said)
                visit.page.wait_for_function(
                    "() => !document.querySelector('#health').textContent.includes('up s')"
                )
                same = {name for name in table_names(visit) & english if "http" not in name}
                assert same <= {"version", "json lines -"}, code


@retried_on_a_busy_machine
def test_a_phone_signs_in_once_and_then_sees_the_road(tmp_path: Path) -> None:
    """Beyond the loopback: nothing but the login page before the token, and nothing of it in an address."""
    port, name = free_port(), "van-7.test"
    vehicle = vehicle_with_page(tmp_path, port, ("wet", 600.0), host="0.0.0.0", names=[name])
    with Daemon(tmp_path, vehicle=vehicle) as daemon, visiting(port, PHONE, name) as visit:
        daemon.wait_for_state("wet", timeout_s=PATIENCE_S)
        visit.open("setup.html")
        assert visit.page.url == f"{visit.home}login.html"
        visit.sign_in("a wrong one")
        visit.wait_for_text("#answer", "not the token")
        visit.open("login.html?to=//evil.example/")
        visit.sign_in()
        visit.wait_for_text("#name", "wet")
        visit.page.wait_for_selector("#picture:not([hidden])")
        visit.page.reload()
        visit.wait_for_text("#name", "wet")
        assert all(url.startswith((visit.home, "blob:")) for url in visit.urls), visit.urls
        assert not any(TOKEN in url for url in visit.urls)
        assert visit.page.evaluate("document.cookie") == ""
        visit.page.click("#sign-out")
        visit.page.wait_for_url("**/login.html")
    assert TOKEN not in daemon.stderr


@retried_on_a_busy_machine
def test_a_page_that_is_opened_late_shows_what_happened_before(tmp_path: Path) -> None:
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("dry", 3.0), ("icy", 600.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for_state("icy", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open()
            visit.wait_for_text("#events", "state icy")
            visit.wait_for_text("#events", "state dry")
            visit.page.wait_for_selector("#events img")
            visit.page.locator("#events img").first.scroll_into_view_if_needed()
            visit.page.wait_for_function("() => document.querySelector('#events img').naturalWidth > 0")
            visit.page.wait_for_function("() => document.querySelector('#history').title.includes('dry')")
            assert visit.errors == []


@retried_on_a_busy_machine
def test_a_crop_that_was_set_up_is_shown_without_a_new_start(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("dry", 600.0))) as daemon:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open("setup.html")
            visit.page.fill("#top", "40")
            visit.page.click("#save")
            visit.page.wait_for_url("**/login.html?to=setup.html")
            visit.sign_in()
            visit.page.wait_for_url("**/setup.html")
            visit.page.wait_for_function("() => document.querySelector('#bottom').value === '100.0'")
            visit.page.fill("#top", "40")
            visit.page.click("#preview")
            visit.wait_for_text("#change", "top = 0.400")
            visit.page.click("#save")
            visit.wait_for_text("#answer", "Written")
            visit.open()
            visit.page.wait_for_selector("#regions rect[y='0.4']", state="attached")
            visit.wait_for_text("#name", "dry")
    assert "crop = { left = 0.000, top = 0.400" in (tmp_path / "vehicle.toml").read_text()


@retried_on_a_busy_machine
def test_the_parts_that_spoke_are_shown_when_asked_for(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("icy", 600.0))) as daemon:
        daemon.wait_for_state("icy", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open()
            visit.page.wait_for_selector("#regions rect", state="attached")
            assert visit.page.locator("#regions .part").count() == 0
            visit.page.check("#parts")
            visit.page.wait_for_selector("#regions .part", state="attached")
            visit.page.uncheck("#parts")
            visit.page.wait_for_selector("#regions .part", state="detached")


@retried_on_a_busy_machine
def test_the_self_test_is_run_from_the_page(tmp_path: Path) -> None:
    """With a real bundle, in a real child; the result stays for whoever opens the page later."""
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("dry", 600.0))
    bundle = write_tiny_bundle(tmp_path / "bundle")
    with Daemon(tmp_path, vehicle={**vehicle, "bundle": str(bundle)}) as daemon:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            visit.open("login.html")
            visit.sign_in()
            visit.page.click("#run-smoke")
            visit.wait_for_text("#smoke-verdict", "passed", timeout_s=2 * PATIENCE_S)
            visit.page.reload()
            visit.wait_for_text("#smoke-verdict", "passed")
            assert visit.page.locator("#smoke tr").count() > 3
            assert visit.errors == []


@pytest.mark.parametrize(
    ("path", "button"), [("", "#run-smoke"), ("setup.html", "#save"), ("login.html", "button")]
)
def test_a_button_waits_for_its_script(tmp_path: Path, path: str, button: str) -> None:
    """One that is pressed sooner would only load the page again."""
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("dry", 600.0))) as daemon:
        daemon.wait_for_state("dry", timeout_s=PATIENCE_S)
        with visiting(port) as visit:
            held: list[Any] = []
            visit.page.route("**/forms.js", lambda route: held.append(route))
            with visit.page.expect_request("**/forms.js"):
                visit.page.goto(visit.home + path, wait_until="commit")
            visit.page.wait_for_selector(button)
            assert visit.page.is_disabled(button)
            held.pop().continue_()
            visit.page.wait_for_selector(f"{button}:enabled")
