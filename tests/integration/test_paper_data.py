"""The papers' own data sets go the whole way with their shipped recipes: train, then evaluate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from original_formats import make_cifar, make_svhn

from edge_road import cli

pytest.importorskip("torch")

QUICKLY = ["--epochs", "1", "--set", "training.workers=0"]


@pytest.mark.parametrize("recipe", ["cifar10", "cifar10_large_margin", "svhn"])
def test_a_paper_data_set_is_trained_on_and_judged(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path / "home"))
    if recipe.startswith("cifar10"):
        make_cifar(tmp_path, per_batch=10)
    else:
        make_svhn(tmp_path, train=40, test=10)
    run = tmp_path / "run"
    assert cli.main(["train", "--recipe", recipe, "--data", str(tmp_path), "--run", str(run), *QUICKLY]) == 0
    assert cli.main(["evaluate", str(run), "--perturbations", "gaussian_40", "--runs", "1"]) == 0
    (entry,) = json.loads((run / "report.json").read_text())["entries"]
    assert len(entry["evaluation"]["classes"]) == 10
    assert entry["evaluation"]["clean"]["danger"] is None  # no road, no ice
