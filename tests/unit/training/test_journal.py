"""One line an epoch; the best epoch is chosen by validation alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from edge_road.training.journal import EpochRecord, Journal, best_of


def record(epoch: int, accuracy: float = 0.5, loss: float = 1.0, **changes: Any) -> EpochRecord:
    values = {
        "epoch": epoch,
        "learning_rate": 1e-3,
        "loss": 2.0,
        "terms": {"softmax": 1.5, "margin": 0.5},
        "train_accuracy": 0.9,
        "validation_accuracy": accuracy,
        "validation_loss": loss,
        "seconds": 3.0,
        "images_per_s": 100.0,
    }
    return EpochRecord.model_validate({**values, **changes})


def test_the_best_epoch_has_the_highest_validation_accuracy() -> None:
    assert best_of([record(1, 0.8), record(2, 0.9), record(3, 0.85)]).epoch == 2


def test_at_equal_accuracy_the_lower_loss_wins_and_then_the_earlier_epoch() -> None:
    assert best_of([record(1, 0.9, 0.5), record(2, 0.9, 0.3), record(3, 0.9, 0.4)]).epoch == 2
    assert best_of([record(1, 0.9, 0.3), record(2, 0.9, 0.3)]).epoch == 1


def test_training_accuracy_does_not_choose() -> None:
    assert best_of([record(1, 0.8, train_accuracy=0.5), record(2, 0.7, train_accuracy=1.0)]).epoch == 1


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_each_epoch_is_a_line_with_its_loss_terms(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write([record(1)])
    journal.write([record(1), record(2, 0.75)])
    journal.close()
    assert [line["epoch"] for line in lines(tmp_path)] == [1, 2]
    assert lines(tmp_path)[1]["terms"] == {"softmax": 1.5, "margin": 0.5}
    assert lines(tmp_path)[1]["validation_accuracy"] == 0.75


def test_a_resumed_journal_drops_what_the_checkpoint_does_not_know(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    first.write([record(1)])
    first.write([record(1), record(2, 0.1)])
    first.close()
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"epoch": 3, "half a li')
    second = Journal(tmp_path, [record(1)])
    assert [line["epoch"] for line in lines(tmp_path)] == [1]
    second.write([record(1), record(2, 0.9)])
    second.close()
    assert [line["validation_accuracy"] for line in lines(tmp_path)] == [0.5, 0.9]


def test_tensorboard_shows_each_epoch_once_even_after_a_resume(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    first.write([record(1)])
    first.write([record(1), record(2, 0.1)])
    first.close()
    second = Journal(tmp_path, [record(1)])
    second.write([record(1), record(2, 0.9)])
    second.close()
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    accuracy = [(event.step, round(event.value, 3)) for event in board.Scalars("accuracy/validation")]
    assert accuracy == [(1, 0.5), (2, 0.9)]
    assert {"loss/softmax", "loss/margin", "loss/total"} <= set(board.Tags()["scalars"])


def test_a_number_that_is_not_finite_cannot_be_recorded() -> None:
    with pytest.raises(ValueError, match="finite"):
        record(1, loss=float("nan"))
