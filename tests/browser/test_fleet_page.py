"""The fleet page in a real browser, with fifty vehicles on a real broker."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fleet_traffic import Traffic
from mosquitto import Broker

from edge_road.client import LONGEST_VALID_MS
from edge_road.runtime.events.event import Draft, Event, Severity

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
FleetService = pytest.importorskip("fleet_service").FleetService
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

COUNT = 50
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
PICTURES = os.environ.get("FLEET_PICTURES")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("fleet")
    with (
        Broker(folder) as broker,
        FleetService(folder, broker) as service,
        Traffic(broker.port, COUNT) as traffic,
    ):
        for _ in range(90):
            traffic.tick()
        draft = Draft("state", Severity.ALARM, 1, "2026-11-16T12:00:00.000Z", True, {"state": "icy"})
        traffic.client.publish("edge_road/van-02/events", Event("van-02", "b", 0, draft).to_json(), qos=1)
        service.wait_for(lambda: service.get("vehicles/van-02/events").json() != [])
        service.traffic = traffic
        yield service


def speak(fleet: Any) -> None:
    """Every vehicle tells its state, which then holds for as long as any is believed."""
    fleet.traffic.tick(LONGEST_VALID_MS)
    fleet.wait_for(lambda: fleet.states() == {v.name: v.state for v in fleet.traffic.vehicles})


def test_a_vehicle_that_believes_to_be_at_the_pole_does_not_stop_the_page(fleet: Any) -> None:
    lines_drawn = """async () => {
      const { makeMap } = await import("/map.js"), svg = document.getElementById("map");
      makeMap(svg, () => {})([{ vehicle: "van", state: "dry", position: [90, 8] }], new Map(), null);
      return svg.querySelectorAll("line").length;
    }"""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(fleet.url)
        assert page.evaluate(lines_drawn) < 200
        browser.close()


def test_whose_session_has_ended_is_led_to_the_login_page(fleet: Any) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.route("**/stream", lambda route: route.fulfill(status=401))
        page.route("**/session", lambda route: route.fulfill(json={"reads": False, "changes": False}))
        page.goto(fleet.url)
        page.wait_for_url("**/login.html?to=", timeout=60_000)
        browser.close()


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone", "desk"])
def test_everybody_sees_every_vehicle(fleet: Any, viewport: dict[str, int], scheme: str) -> None:
    speak(fleet)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport=viewport, color_scheme=scheme, locale="en-GB").new_page()
        errors: list[str] = []
        urls: list[str] = []
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: urls.append(request.url))
        page.goto(fleet.url)
        page.wait_for_function(
            f"() => document.querySelectorAll('#vehicles tr').length === {COUNT}", timeout=60_000
        )
        page.wait_for_function(
            f"() => document.querySelectorAll('#map circle').length === {COUNT}", timeout=60_000
        )
        page.click("[data-vehicle=van-02] button")
        page.wait_for_selector("#events li", timeout=60_000)
        shown = Counter(page.eval_on_selector_all("#vehicles tr", "rows => rows.map((r) => r.dataset.state)"))
        assert shown == Counter(vehicle.state for vehicle in fleet.traffic.vehicles)
        assert "state icy" in page.inner_text("#events")
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        found = axe.Axe().run(page).response["violations"]
        serious = [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
        if PICTURES:
            page.screenshot(path=str(Path(PICTURES) / f"fleet_{scheme}.png"), full_page=True)
        browser.close()
    assert serious == []
    assert errors == []
    assert all(url.startswith(fleet.url) for url in urls), urls
