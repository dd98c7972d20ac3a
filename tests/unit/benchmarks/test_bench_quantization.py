"""The table over folds says what was answered, and an interrupted measurement goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

from tiny_onnx import SIZE, conv_bytes
from tiny_run import draw_pictures, write_run_without_weights

from benchmarks import quantization_folds
from benchmarks.fold_table import HEADER, FoldAnswers, Pooled, pool, table_rows
from benchmarks.int8_recipes import RECIPES, Workshop
from edge_road.errors import BackendError, ConfigError, DataError
from edge_road.export.rtx_check import RtxReport
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe
from edge_road.recipe_data import FolderData

LABELS = (0, 0, 1, 1, 2, 2, 2, 2)


def fold(recipe: str, clean: list[int], noisy: list[list[int]], run: str = "fold0") -> FoldAnswers:
    missed = {
        name: tuple(tuple(label == 2 and said != 2 for label, said in zip(LABELS, row)) for row in rows)
        for name, rows in (("clean", [clean]), ("gaussian_40", noisy))
    }
    return FoldAnswers(
        identity="x",
        run=run,
        recipe=recipe,
        keys=tuple(f"{run}/{number}" for number in range(len(LABELS))),
        labels=LABELS,
        icy=tuple(label == 2 for label in LABELS),
        said={"clean": (tuple(clean),), "gaussian_40": tuple(map(tuple, noisy))},
        missed_ice=missed,
        size_share=0.25,
        int8_kernels=44,
        heavy_kernels=55,
        work_share=0.87,
        rtx="built",
    )


RIGHT = list(LABELS)
ONE_LOST = [0, 0, 1, 1, 2, 2, 2, 0]


def test_every_picture_of_every_fold_counts_once() -> None:
    """Recomputed by hand: 16 pictures, one of them lost, on ice."""
    answers = {
        "float32": [fold("float32", RIGHT, [RIGHT, RIGHT], run) for run in ("fold0", "fold1")],
        "mixed": [fold("mixed", RIGHT, [RIGHT, ONE_LOST]), fold("mixed", ONE_LOST, [RIGHT, RIGHT], "fold1")],
    }
    pooled = pool(answers)
    np.testing.assert_allclose(pooled["mixed"].right(["clean"]).mean(), 15 / 16)
    np.testing.assert_allclose(pooled["mixed"].right(["gaussian_40"]).mean(), 1 - 0.5 / 16)
    np.testing.assert_allclose(pooled["mixed"].missed(["clean"]).mean(), 1 / 8)
    np.testing.assert_allclose(pooled["mixed"].agreement(pooled["float32"], ["clean"]), 15 / 16)
    row = dict(zip(HEADER, table_rows(pooled, "float32")[1]))
    assert row["clean"] == "93.75"
    assert row["INT8 kernels"] == "44 of 55"
    assert row["rise (95 %)"].startswith("+12.50 (")
    assert table_rows(pooled, "float32")[1][2].startswith("+6.25 (+0.00 to ")


def test_answers_on_other_pictures_are_not_compared() -> None:
    answers = {
        "float32": [fold("float32", RIGHT, [RIGHT])],
        "mixed": [fold("mixed", RIGHT, [RIGHT], "fold9")],
    }
    with pytest.raises(DataError):
        pool(answers)


def test_a_recipe_that_cannot_run_here_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workshop, "images", lambda self: np.zeros((1, 8, 8, 3), np.uint8))
    shop = Workshop(exporter=None, float_bytes=b"", modelopt=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="modelopt gave no model"):
        shop.modelopt_default()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose float model is exported already: torch's exporter is slow."""
    data = FolderData(kind="folder", path=draw_pictures(tmp_path / "pictures", count=12, side=32))
    run = tmp_path / "comparison" / "runs" / "softmax-fold0"
    preprocessing = Preprocessing(height=SIZE[0], width=SIZE[1])
    write_run_without_weights(run, Recipe(name="tiny", data=data), preprocessing)
    folder = tmp_path / "out" / "softmax-fold0-11111111"
    folder.mkdir(parents=True)
    (folder / "float32.onnx").write_bytes(conv_bytes())
    return run


def test_a_comparison_becomes_a_table_and_is_measured_once(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quantization_folds, "rtx_check", lambda *_: RtxReport("not installed"))
    (tmp_path / "target.toml").write_text('name = "test"\n[calibration]\nimages = 8\n')
    words = [str(tmp_path / "comparison"), "--row", "softmax", "--out", str(tmp_path / "out"), "--runs", "2"]
    words += ["--target", str(tmp_path / "target.toml"), "--perturbations", "gaussian_40,stripes"]
    words += ["--recipes", "mixed,all"]
    assert quantization_folds.main(words) == 0
    table = (tmp_path / "out" / "table.md").read_text()
    assert "6 test pictures of 1 runs" in table
    assert table.count("\n| ") == 5
    monkeypatch.setattr(quantization_folds.Fold, "_measure", None)
    assert quantization_folds.main(words) == 0
    assert (tmp_path / "out" / "table.md").read_text() == table
    assert "mixed not installed" in capsys.readouterr().out


def test_a_folder_without_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        quantization_folds.find_runs([tmp_path], "discriminative")
    assert Pooled([fold("mixed", RIGHT, [RIGHT])]).perturbed == ["gaussian_40"]
    assert "qat" in RECIPES
