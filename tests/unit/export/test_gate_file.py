"""What stands beside a bundle: readable in every version that was ever written, and drawn on a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge_road.errors import BundleError
from edge_road.export.footprint import Footprint
from edge_road.export.gate import Check
from edge_road.export.gate_file import VerifyFile, VerifyOf, read_verify_file, write_verify_file
from edge_road.export.gate_page import gate_page, used_share, write_gate_page

# As version 1 was written, word for word.
VERSION_1: dict[str, Any] = {
    "schema_name": "edge_road.verify/1",
    "bundle_digest": "ab" * 32,
    "target": "vehicle",
    "artefacts": {
        "int8": {
            "released": False,
            "reasons": ["agreement with float 0.9 (at least 0.98)"],
            "checks": [
                {
                    **{"name": "agreement with float", "value": 0.9, "limit": 0.98, "at_least": True},
                    **{"ceiling": None, "significance": 0.0, "loss": None},
                    **{"passed": False, "left_to_chance": False},
                }
            ],
        }
    },
    "steps_s": {"export ONNX": 9.5},
}
AGREEMENT = Check(name="agreement with float", value=0.9, limit=0.98, at_least=True)
LATENCY = Check(name="time of an image here, ms", value=5.0, limit=1000.0)


def verdicts() -> VerifyFile:
    judged = VerifyOf(
        released=False,
        reasons=(AGREEMENT.text, "<b>not bold</b>"),
        checks=(AGREEMENT,),
        machine=(LATENCY,),
        footprint=Footprint(latency_ms=5.0, memory_mb=90.0),
    )
    return VerifyFile(
        bundle_digest="ab" * 32, target="vehicle", artefacts={"int8": judged}, steps_s={"a": 1.0}
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_verify_file(tmp_path / "bundle", verdicts())
    assert read_verify_file(path) == verdicts()
    row = json.loads(path.read_text())["artefacts"]["int8"]["checks"][0]
    assert row["passed"] is False


def test_the_first_version_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "old.verify.json"
    path.write_text(json.dumps(VERSION_1))
    found = read_verify_file(path)
    assert found.artefacts["int8"].checks == (AGREEMENT,)
    assert found.artefacts["int8"].footprint is None
    assert not found.artefacts["int8"].released


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (json.dumps({**VERSION_1, "schema_name": "edge_road.verify/9"}), "newer kind"),
        (json.dumps({**VERSION_1, "schema_name": "other"}), "not the file"),
        (json.dumps({"schema_name": "edge_road.verify/1"}), "cannot be read"),
        ("[]", "cannot be read"),
        ("{", "cannot be read"),
    ],
)
def test_what_is_no_verdict_is_refused_in_words(tmp_path: Path, content: str, word: str) -> None:
    path = tmp_path / "x.verify.json"
    path.write_text(content)
    with pytest.raises(BundleError, match=word):
        read_verify_file(path)


def test_a_missing_verdict_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no verdict"):
        read_verify_file(tmp_path / "nothing.verify.json")


@pytest.mark.parametrize(
    ("check", "share"),
    [
        (Check(name="a", value=0.99, limit=0.98, at_least=True), 0.5),
        (Check(name="a", value=0.96, limit=0.98, at_least=True), 2.0),
        (Check(name="a", value=0.02, limit=0.01), 2.0),
        (Check(name="a", value=-0.02, limit=0.01), 0.0),
        (Check(name="a", value=0.0, limit=0.0), 0.0),
        (Check(name="a", value=1.0, limit=0.0), float("inf")),
    ],
)
def test_how_much_of_a_limit_is_used(check: Check, share: float) -> None:
    assert used_share(check) == pytest.approx(share)


def test_the_page_needs_nothing_but_itself_and_draws_every_figure(tmp_path: Path) -> None:
    text = write_gate_page(tmp_path / "bundle", verdicts()).read_text()
    assert text == gate_page(verdicts())
    assert text.count("<svg") == 1
    for word in ("agreement with float", "time of an image here", "refused", "at least 0.98", "breached"):
        assert word in text
    assert "<b>not bold" not in text
    assert "http" not in text
