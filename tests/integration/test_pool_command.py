"""`edge-road pool` over the runs of a comparison, each on its own pictures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tiny_run import draw_pictures, write_fitted_run

from edge_road import cli
from edge_road.recipe import ModelSettings
from edge_road.recipe_data import FolderData
from edge_road.training.pool import curvature

RUNS = ("softmax-fold0", "softmax-fold1", "discriminative-fold0")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folds of one method and one of another; the models are the same, which does not matter here."""
    home = tmp_path_factory.mktemp("pool")
    data = FolderData(kind="folder", path=draw_pictures(home / "pictures", count=20, side=32))
    settings = ModelSettings(backbone="test_efficientnet", features=8)
    first = write_fitted_run(home / "out" / "runs" / RUNS[0], data, settings, size=32)
    for name in RUNS[1:]:
        shutil.copytree(first, first.with_name(name))
    (home / "out" / "runs" / "unfinished-fold0").mkdir()
    return home / "out"


def pool(place: Path, *words: str) -> int:
    return cli.command("pool", [str(place), "--out", str(place / "pooled"), "--images", "3", *words])


def test_a_comparison_is_measured_by_row_with_tables_and_figures(
    comparison: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pool(comparison) == 0
    shown = capsys.readouterr().out
    assert "Proposed rule" in shown
    found = json.loads((comparison / "pooled" / "pool.json").read_text())
    assert found["reference"] == "softmax"
    rows = {row["name"]: row for row in found["strangers"]}
    assert {name: row["runs"] for name, row in rows.items()} == {"discriminative": 1, "softmax": 2}
    assert set(rows["softmax"]["kinds"]) >= {"black", "white", "noise", "text_page", "sky", "indoor"}
    assert rows["softmax"]["means"]["distance"]["deviation"] == 0.0
    flat, base = found["curvature"]
    assert (flat["name"], flat["pictures"], flat["flatter"]) == ("discriminative", 3, None)
    assert (base["name"], base["pictures"], len(base["medians"])) == ("softmax", 6, 2)
    assert {row["name"] for row in found["layers"]} == {"discriminative", "softmax"}
    assert {path.name for path in (comparison / "pooled" / "figures").iterdir()} == {
        "curvature.png",
        "retained.png",
        "layers-discriminative.png",
        "layers-softmax.png",
    }

    def measured(*words: object) -> None:
        pytest.fail("measured again")

    monkeypatch.setattr(curvature, "_measured", measured)
    assert pool(comparison, "--measures", "curvature") == 0
    again = json.loads((comparison / "pooled" / "pool.json").read_text())
    assert again["curvature"] == found["curvature"]
    assert again["strangers"] == []


def test_a_misspelt_measure_or_row_is_named(comparison: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pool(comparison, "--measures", "curvatur") == 2
    assert "did you mean 'curvature'?" in capsys.readouterr().err
    assert pool(comparison, "--measures", "curvature", "--reference", "sofmax") == 2
    assert "did you mean 'softmax'?" in capsys.readouterr().err
    assert pool(comparison / "nowhere") == 2
