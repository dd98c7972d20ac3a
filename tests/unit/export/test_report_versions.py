"""The report inside a bundle is read in every version that there is, and refused in words otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_bundle import write_tiny_bundle

from edge_road.bundle import load_bundle, record_files, write_bundle
from edge_road.cli import command


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"schema_name": "edge_road.export_report/7", "artefacts": {}}, ("newer kind", "update edge_road")),
        ({"schema_name": "something"}, ("not the file that it should be",)),
        ({"schema_name": "edge_road.export_report/1", "artefacts": {}}, ("a model was never judged",)),
        ({"schema_name": "edge_road.export_report/1"}, ("cannot be read",)),
        ([], ("cannot be read",)),
    ],
)
def test_a_report_of_another_kind_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], report: object, words: tuple[str, ...]
) -> None:
    bundle = load_bundle(write_tiny_bundle(tmp_path / "bundle"))
    contents = {**bundle.contents, "report.json": json.dumps(report).encode()}
    manifest = bundle.manifest.model_copy(update={"files": record_files(contents)})
    write_bundle(bundle.path, manifest, contents)
    assert command("verify", [str(bundle.path)]) == 3
    text = capsys.readouterr().err
    for word in words:
        assert word in text
