"""The Grafana dashboard and the Prometheus rules ask for nothing that /metrics does not show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from road_messages import road

from edge_road.clock import SystemClock
from edge_road.runtime.events.writer import StorageHealth
from edge_road.runtime.evidence import Machine
from edge_road.runtime.outputs.metrics import Metrics
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.status import Status

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "edge_road.json").read_text())
RULES = (DEPLOY / "prometheus" / "edge_road.rules.yml").read_text()
PANELS = DASHBOARD["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
SELECTOR = re.compile(r"\b(edge_road_\w+)(\{[^}]*\})?")


@pytest.fixture(scope="module")
def shown() -> dict[str, set[str]]:
    """Metric names and their labels, of a daemon to which everything has happened once."""
    status = Status("van", "b", SystemClock())
    status.published(road("icy", 1, reasons=("changing",), stage_ms={"predict": 4.0}), "")
    status.storage = lambda: StorageHealth(**dict.fromkeys(StorageHealth.__dataclass_fields__, 0))
    status.outputs = lambda: [OutputHealth("mqtt", True)]
    status.machine = Machine(rate_hz=30, hottest_c=50, power_mode=None, dropped_share=0, available_mb=100)
    found: dict[str, set[str]] = {}
    for line in Metrics(status).text().decode().splitlines():
        if not line.startswith("#"):
            name, _, labels = line.rpartition(" ")[0].partition("{")
            found[name] = set(re.findall(r'(\w+)="', labels))
    return found


@pytest.mark.parametrize("text", [*EXPRESSIONS, RULES], ids=lambda text: text[:40])
def test_metrics_and_labels_exist(text: str, shown: dict[str, set[str]]) -> None:
    queries = re.sub(r"edge_road:[\w:]+|description:.*|summary:.*|#.*", "", text)
    for name, labels in SELECTOR.findall(queries):
        if name == "edge_road_rules":
            continue
        assert name in shown, name
        assert set(re.findall(r"(\w+)=", labels)) <= shown[name] | {"instance", "job"}, name + labels


def test_panels_have_their_own_places() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's prometheus package")
def test_promtool_accepts_and_tries_the_rules() -> None:
    for words in (["check", "rules", "edge_road.rules.yml"], ["test", "rules", "edge_road.rules_test.yml"]):
        done = subprocess.run(
            ["promtool", *words], cwd=DEPLOY / "prometheus", capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
