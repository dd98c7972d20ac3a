"""A whole comparison on a few drawn pictures: interrupted, continued, and asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_run import draw_pictures

from edge_road import cli
from edge_road.run_record import CHECKPOINT_FOLDER
from edge_road.training.compare import trials
from edge_road.training.guard import LossIsNoNumber

RECIPE = """
name = "tiny"
[data]
kind = "folder"
path = "pictures"
[input]
height = 32
width = 32
[model]
backbone = "test_efficientnet"
features = 8
[augment]
color_jitter = 0.0
rotation_degrees = 0.0
perspective = 0.0
[optimizer]
schedule = "constant"
[training]
epochs = 1
batch_size = 8
threads = 1
workers = 0
"""
CHOICE = ["--methods", "softmax,discriminative", "--folds", "2", "--perturbations", "gaussian_40,down_up"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draw_pictures(tmp_path / "pictures", count=8, side=32)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were trained; `stop` in it interrupts before the next one."""
    runs: list[str] = []
    original = trials.train

    def watched(recipe: Any, run: Path, progress: Any) -> Any:
        if "stop" in runs:
            raise KeyboardInterrupt
        runs.append(run.name)
        if len(runs) == 3:
            runs.append("stop")
            raise KeyboardInterrupt
        return original(recipe, run, progress)

    monkeypatch.setattr(trials, "train", watched)
    return runs


def compare(*words: str) -> int:
    return cli.command("compare", ["--recipe", "tiny.toml", "--out", "out", "--runs", "2", *words])


def test_an_interrupted_comparison_continues_and_a_finished_one_trains_nothing(
    folder: Path, trained: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(*CHOICE) == 130
    assert not (folder / "out" / "table.json").exists()
    assert trained[:3] == ["softmax-fold0", "discriminative-fold0", "softmax-fold1"]
    trained[:] = ["was", "interrupted", "before", "and", "goes on"]
    assert compare(*CHOICE) == 0
    assert trained[5:] == ["softmax-fold1", "discriminative-fold1"]
    lines = capsys.readouterr().out
    assert "4/4  discriminative, fold 2: clean" in lines
    assert "left" in lines

    table = json.loads((folder / "out" / "table.json").read_text())
    assert table["pictures"] == 24, "every picture was tested once"
    assert [row["name"] for row in table["rows"]] == ["softmax", "discriminative"]
    assert table["reference"] == "discriminative"
    assert list(table["rows"][0]["cells"]) == ["clean", "gaussian_40", "down_up", "mean"]
    page = (folder / "out" / "compare.html").read_text()
    assert page.count("data:image/png") == 2
    assert not list((folder / "out" / "runs").glob(f"*/{CHECKPOINT_FOLDER}")), "nothing left to resume"

    before = (folder / "out" / "table.json").read_bytes()
    del trained[5:]
    assert compare(*CHOICE) == 0
    assert trained[5:] == []
    assert (folder / "out" / "table.json").read_bytes() == before

    assert compare(*CHOICE, "--figures", "2") == 0
    assert trained[5:] == [], "figures come from what the trials have stored"
    assert {path.name for path in (folder / "out" / "figures").iterdir()} == {
        "noise.png",
        "features.png",
        "curvature.png",
        "retained.png",
        "layers-softmax.png",
        "layers-discriminative.png",
    }
    page = (folder / "out" / "compare.html").read_text()
    assert page.count("data:image/png") == 6
    assert len(page) < 3_000_000
    assert "Of 4 test pictures in all" in page


@pytest.mark.parametrize(("diverging", "has_tables"), [("noisy", True), ("softmax", False)])
def test_a_method_that_diverges_is_named_with_its_fold_and_costs_the_others_nothing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    diverging: str,
    has_tables: bool,
) -> None:
    original, tried = trials.train, []

    def diverge(recipe: Any, run: Path, progress: Any) -> Any:
        tried.append(run.name)
        if recipe.method.name == diverging:
            raise LossIsNoNumber("epoch 1, batch 1 of 2").for_good(roll_backs=2, epochs=0)
        return original(recipe, run, progress)

    monkeypatch.setattr(trials, "train", diverge)
    words = ["--methods", "noisy,softmax", "--reference", "softmax", "--seeds", "2", "--perturbations", ""]
    assert compare(*words) == 2
    assert len(tried) == 3, "the second seed of what diverged is not tried"
    told = capsys.readouterr()
    assert f"{diverging}, seed 1: the loss is no longer a finite number, after 2 roll-backs" in told.err
    assert f"the tables will be without {diverging}" in told.out
    assert (folder / "out" / "table.json").exists() == has_tables
    if has_tables:
        table = json.loads((folder / "out" / "table.json").read_text())
        assert [(row["name"], len(row["cells"]["clean"]["by_part"])) for row in table["rows"]] == [
            ("softmax", 2)
        ]


def test_another_recipe_in_the_same_folder_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ["--methods", "softmax", "--seeds", "1", "--perturbations", ""]
    assert compare(*alone) == 0
    assert compare(*alone, "--epochs", "2") == 2
    assert "give another --out" in capsys.readouterr().err


def test_a_misspelt_perturbation_or_reference_is_named_before_training(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare("--methods", "softmax", "--perturbations", "gausian_40") == 2
    assert compare("--methods", "softmax", "--reference", "softmaks") == 2
    told = capsys.readouterr().err
    assert "did you mean 'gaussian_40'?" in told
    assert "did you mean 'softmax'?" in told
    assert not (folder / "out").exists()
