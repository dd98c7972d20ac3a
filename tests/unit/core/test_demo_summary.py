"""What a person reads at the end of the demo, and what a failed one leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from edge_road import cli, demo
from edge_road.demo import (
    LEAST_ACCURACY,
    LEAST_RIGHT_SHARE,
    LONGEST_WRONG_S,
    _models,
    _step,
    _summary,
    main,
)
from edge_road.errors import EdgeRoadError
from edge_road.synthetic.score import DriveScore, Segment, score_states


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


DRIVEN = score_states([Segment("dry", 60)], [(0, "dry"), (60, "dry")])


@pytest.mark.parametrize(
    ("accuracy", "score", "code"),
    [
        (LEAST_ACCURACY, DRIVEN, 0),
        (LEAST_ACCURACY - 0.001, DRIVEN, 6),
        (1.0, replace(DRIVEN, right_share=LEAST_RIGHT_SHARE - 0.001), 6),
        (1.0, replace(DRIVEN, longest_wrong_s=LONGEST_WRONG_S + 0.001), 6),
    ],
)
def test_a_demo_ends_as_a_gate_that_refuses_when_a_promise_is_broken(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    accuracy: float,
    score: DriveScore,
    code: int,
) -> None:
    """The steps are tested where they are; here only what is made of their results."""

    def step(name: str, *options: object) -> None:
        if name == "run":
            (tmp_path / "runs" / "demo-0001" / "drive.jsonl").touch()

    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "_step", step)
    monkeypatch.setattr(demo, "_held_out_accuracy", lambda report: accuracy)
    monkeypatch.setattr(demo, "_models", lambda report: "float32")
    monkeypatch.setattr(demo, "score_messages", lambda messages, truth: score)
    assert cli.command("demo", []) == code
    told = capsys.readouterr()
    assert f"held out     {accuracy:.1%} right (at least 95% promised)" in told.out
    assert ("the demo does not keep its promises" in told.err) == (code == 6)
