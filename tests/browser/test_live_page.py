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

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

TOKEN = "a-token-for-tests"
PAGE_BYTES = 150_000
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def vehicle_with_page(folder: Path, port: int, *segments: tuple[str, float]) -> dict[str, Any]:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    vehicle = pattern_vehicle(*segments)
    page = {"kind": "http", "port": port, "token_file": str(token), "snapshots": True}
    return {**vehicle, "outputs": [{"kind": "json_lines", "path": "-"}, page]}


class Visit:
    """A browser window on the page, and everything that went wrong in it."""

    def __init__(self, page: Any, port: int) -> None:
        self.page, self.home = page, f"http://127.0.0.1:{port}/"
        self.errors: list[str] = []
        self.urls: list[str] = []
        self.received_bytes = 0
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.urls.append(request.url))

    def open(self, path: str = "") -> None:
        self.page.goto(self.home + path)

    def wait_for_text(self, selector: str, text: str, timeout_s: float = 20.0) -> float:
        self.page.wait_for_function(
            "([where, text]) => document.querySelector(where).textContent.includes(text)",
            arg=[selector, text],
            timeout=1000 * timeout_s,
            polling=50,
        )
        return time.monotonic()


@contextmanager
def visiting(port: int, viewport: dict[str, int] = DESK, **options: Any) -> Iterator[Visit]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_context(viewport=viewport, locale="en-GB", **options).new_page()
            yield Visit(page, port)
        finally:
            browser.close()


def test_the_page_loads_without_errors_and_asks_nobody_else(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("dry", 600.0))) as daemon:
        daemon.wait_for_state("dry")
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


@pytest.mark.parametrize("path", ["", "setup.html"])
@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone", "desk"])
def test_everybody_can_read_it(tmp_path: Path, path: str, viewport: dict[str, int], scheme: str) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("icy", 600.0))) as daemon:
        daemon.wait_for_state("icy")
        with visiting(port, viewport, color_scheme=scheme) as visit:
            visit.open(path)
            visit.page.wait_for_selector("#picture:not([hidden])")
            found = axe.Axe().run(visit.page).response["violations"]
            serious = [
                (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")
            ]
            assert serious == []
            width = visit.page.evaluate("document.documentElement.scrollWidth")
            assert width <= viewport["width"], "something is cut off at the right"


@retried_on_a_busy_machine
def test_a_change_of_the_road_is_seen_within_a_second(tmp_path: Path) -> None:
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("dry", 12.0), ("icy", 600.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon, visiting(port) as visit:
        daemon.wait_for_state("dry")
        visit.open()
        visit.wait_for_text("#name", "dry")
        shown_s = visit.wait_for_text("#name", "icy", timeout_s=30)
        said_s = daemon.wait_for_state("icy")
        assert shown_s - said_s <= 1.0 * crowding()


@retried_on_a_busy_machine
def test_a_dead_daemon_is_stale_within_two_seconds_and_a_new_one_is_found(tmp_path: Path) -> None:
    port = free_port()
    vehicle = vehicle_with_page(tmp_path, port, ("wet", 600.0))
    with visiting(port) as visit:
        with Daemon(tmp_path, vehicle=vehicle) as daemon:
            daemon.wait_for_state("wet")
            visit.open()
            visit.wait_for_text("#name", "wet")
            daemon.process.kill()
            killed_s = time.monotonic()
            stale_s = visit.wait_for_text("#reason", "no message")
            assert stale_s - killed_s <= 2.0 * crowding()
            assert visit.page.text_content("#name") == "unknown"
        with Daemon(tmp_path, vehicle=vehicle) as daemon:
            daemon.wait_for_state("wet")
            visit.wait_for_text("#name", "wet")


def test_the_page_speaks_german_and_french(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, vehicle=vehicle_with_page(tmp_path, port, ("wet", 600.0))) as daemon:
        daemon.wait_for_state("wet")
        with visiting(port) as visit:
            visit.open()
            for code, word in (("de", "nass"), ("fr", "mouillée")):
                visit.page.select_option("#language", code)
                visit.wait_for_text("#name", word)
                assert visit.page.get_attribute("html", "lang") == code
