"""Whatever the daemon names on its page has a name in every language of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edge_road.clock import ScriptedClock
from edge_road.runtime.events.event import GAP
from edge_road.runtime.evidence import Machine
from edge_road.runtime.outputs.can_frame import REASONS
from edge_road.runtime.outputs.web_stream import flat_health
from edge_road.runtime.quality import PROBLEMS
from edge_road.runtime.status import Status

ELSEWHERE = {"boot_id", "kind"}
"""what the page leaves out"""
KINDS = {"state", "model", "fault_begin", "fault_end", "config", "shutdown", GAP}


def names_in(root: Path, code: str) -> set[str]:
    text = (root / "edge_road" / "web" / "page" / "words.js").read_text()
    [block] = re.findall(rf"^  {code}: {{.*?names: {{(.*?)}},?$", text, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"(\w+): \"", block))


@pytest.mark.parametrize("code", ["de", "fr"])
def test_reasons_events_and_figures_have_names(root: Path, code: str) -> None:
    figures = {*flat_health(Status("van", "b", ScriptedClock())), *Machine.model_fields}
    assert {*REASONS, *PROBLEMS, *KINDS, *figures} - ELSEWHERE <= names_in(root, code)


def test_the_languages_name_the_same(root: Path) -> None:
    assert names_in(root, "de") == names_in(root, "fr")
