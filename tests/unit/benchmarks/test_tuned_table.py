"""Of several settings each method and fold is judged with the one that did best on validation."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

from benchmarks.tuned_table import best_run
from edge_road.run_record import METRICS_FILE
from edge_road.training.journal import EpochRecord


def comparison(folder: Path, *epochs: tuple[float, float]) -> Path:
    """With one run, whose epochs had these validation accuracies and losses."""
    unimportant = {"learning_rate": 1e-3, "loss": 1.0, "terms": {}, "train_accuracy": 1.0}
    lines = [
        EpochRecord(
            epoch=number,
            validation_accuracy=accuracy,
            validation_loss=loss,
            seconds=1.0,
            images_per_s=1.0,
            **unimportant,
        ).model_dump_json()
        for number, (accuracy, loss) in enumerate(epochs, start=1)
    ]
    run = folder / "runs" / "softmax-fold2"
    run.mkdir(parents=True)
    (run / METRICS_FILE).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ([(0.9, 0.3), (0.7, 0.1)], [(0.8, 0.1), (0.8, 0.1)], "a"),
        ([(0.9, 0.3)], [(0.9, 0.4), (0.9, 0.2)], "b"),
        ([(0.9, 0.3)], [(0.9, 0.3)], "a"),
    ],
)
def test_the_better_validation_epoch_decides(
    tmp_path: Path, first: list[tuple[float, float]], second: list[tuple[float, float]], best: str
) -> None:
    folders = [comparison(tmp_path / "a", *first), comparison(tmp_path / "b", *second)]
    assert best_run(folders, "softmax", 2) == tmp_path / best / "runs" / "softmax-fold2"
