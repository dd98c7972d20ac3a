"""The schema that we publish is the message that we send."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from road_messages import blind, road

from edge_road.road_state import message_schema

jsonschema = pytest.importorskip("jsonschema")


def test_the_published_schema_is_the_one_of_the_code(root: Path) -> None:
    assert json.loads((root / "docs" / "message.schema.json").read_text()) == message_schema()


def test_the_schema_file_is_made_by_its_script(root: Path) -> None:
    code = "import make_message_schema as m; print(m.text() == m.PAGE.read_text())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root / "docs", capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize("message", [road("icy", 1), road("dry", 2, speed_mps=3.5), blind("no_frames", 3)])
def test_every_message_keeps_the_schema(message) -> None:  # type: ignore[no-untyped-def]
    jsonschema.validate(json.loads(message.to_json()), message_schema())


@pytest.mark.parametrize(
    "change", [{"state": "slippery"}, {"seq": -1}, {"valid_for_ms": 0}, {"more": 1}, {"crc32": "x"}]
)
def test_other_things_do_not(change: dict[str, object]) -> None:
    values = {**json.loads(road("icy", 1).to_json()), **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, message_schema())
