"""What a person reads at the end of the demo, and what a failed one leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edge_road.demo import _models, _step, _summary, main
from edge_road.errors import EdgeRoadError
from edge_road.synthetic.score import Segment, score_states


def test_the_summary_tells_of_the_drive_and_of_its_ice() -> None:
    score = score_states([Segment("dry", 60), Segment("icy", 30)], [(0, "dry"), (9, "icy"), (10, "dry")])
    summary = _summary(Path("run"), Path("bundle"), "float32", Path("drive.jsonl"), 0.99, score, 12.0)
    assert "drive        65.6% of the seconds right (at least 95%), longest wrong 30.00 s" in summary
    assert "models       float32\n" in summary
    assert "ice          false alarms 1 (60.0 per hour without ice), called dry or wet 30.0 s" in summary


def test_the_summary_names_what_the_gate_refused(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    judged = {"released": True, "reasons": []}
    refused = {"released": False, "reasons": ["file size against float 0.5 (at most 0.35)"]}
    report.write_text(json.dumps({"artefacts": {"float16": judged, "float32": judged, "int8": refused}}))
    words = "float32, float16; int8 refused: file size against float 0.5 (at most 0.35)"
    assert _models(report) == words


def test_a_step_that_fails_gives_the_demo_its_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EdgeRoadError, match="the step 'verify' failed") as error:
        _step("verify", "no/such/bundle")
    assert error.value.exit_code == 3
    assert "cannot be read" in capfd.readouterr().err


def test_a_demo_that_cannot_begin_leaves_no_empty_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    with pytest.raises(EdgeRoadError, match="the step 'train' failed") as error:
        main(["--epochs", "1"])
    assert error.value.exit_code == 2
    assert "must be below training.epochs (--epochs)" in capfd.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == []
