"""The check's findings as one HTML page with pictures, which needs nothing but itself."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from edge_road.datasets.index import RoadDataset
from edge_road.errors import DataError
from edge_road.evaluation.page import percent
from edge_road.evaluation.page_pictures import data_uri
from edge_road.files import write_atomically
from edge_road.training.data_check.findings import KINDS, CheckReport, Finding

MOST_SHOWN = 24
SIDE_PX = 240
PAGE_FILE, JSON_FILE = "data_check.html", "data_check.json"


def write_check(folder: Path, report: CheckReport, dataset: RoadDataset) -> tuple[Path, Path]:
    write_atomically(folder / JSON_FILE, json.dumps(report.as_json(), indent=1).encode())
    write_atomically(folder / PAGE_FILE, render_page(report, dataset).encode())
    return folder / PAGE_FILE, folder / JSON_FILE


def render_page(report: CheckReport, dataset: RoadDataset) -> str:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["percent"] = percent
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        report=report,
        sections=[_section(kind, found, dataset) for kind, found in report.by_kind.items()],
        classes=dataset.classes.names,
    )


def _section(kind: str, found: list[Finding], dataset: RoadDataset) -> dict[str, Any]:
    level, title = KINDS[kind]
    cards = [(finding, _pictures(finding, dataset)) for finding in found[:MOST_SHOWN]]
    return {
        "kind": kind,
        "level": level,
        "title": title,
        "count": len(found),
        "more": len(found) - len(cards),
        "cards": cards,
        "has_pictures": any(pictures for _, pictures in cards),
    }


def _pictures(finding: Finding, dataset: RoadDataset) -> list[str]:
    keys = [finding.file] if finding.other is None else [finding.file, finding.other]
    found = [_picture(key, dataset) for key in keys]
    return [picture for picture in found if picture]


def _picture(key: str, dataset: RoadDataset) -> str | None:
    """None for what is no picture, or none that can be shown."""
    try:
        return data_uri(dataset.read(key), SIDE_PX)
    except (DataError, ValueError):
        return None
