"""What each epoch brought, as JSON lines and for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from edge_road.config import StrictModel
from edge_road.files import write_atomically
from edge_road.run_record import METRICS_FILE, TENSORBOARD_FOLDER


class EpochRecord(StrictModel):
    """One line of metrics.jsonl; all but the last two repeat bit for bit on the same machine."""

    epoch: int
    """counts from 1"""
    learning_rate: float
    """in the last batch"""
    loss: float
    terms: dict[str, float]
    """what the loss is made of, by name; they add up to it"""
    train_accuracy: float
    validation_accuracy: float
    validation_loss: float
    """cross-entropy on clean pictures"""
    seconds: float
    images_per_s: float
    """in training"""

    def is_better_than(self, other: EpochRecord | None) -> bool:
        """By validation accuracy; at equal accuracy the lower loss wins."""
        return other is None or self._merit > other._merit

    @property
    def _merit(self) -> tuple[float, float]:
        return self.validation_accuracy, -self.validation_loss


def best_of(history: Sequence[EpochRecord]) -> EpochRecord:
    """The first of the best, as training met them."""
    best = history[0]
    for record in history[1:]:
        best = record if record.is_better_than(best) else best
    return best


def epochs_since_best(history: Sequence[EpochRecord]) -> int:
    return history[-1].epoch - best_of(history).epoch if history else 0


class Journal:
    """Always the whole history, so that a resumed run leaves the same lines as an uninterrupted one."""

    def __init__(self, run: Path, history: Sequence[EpochRecord] = ()) -> None:
        self._run = run
        self._board = SummaryWriter(str(run / TENSORBOARD_FOLDER), purge_step=len(history) + 1)
        self._write_lines(history)

    def write(self, history: Sequence[EpochRecord]) -> None:
        self._write_lines(history)
        newest = history[-1]
        for name, value in _scalars(newest).items():
            self._board.add_scalar(name, value, newest.epoch)
        self._board.flush()

    def close(self) -> None:
        self._board.close()

    def _write_lines(self, history: Sequence[EpochRecord]) -> None:
        text = "".join(record.model_dump_json() + "\n" for record in history)
        write_atomically(self._run / METRICS_FILE, text.encode())


def _scalars(record: EpochRecord) -> dict[str, float]:
    return {
        "loss/total": record.loss,
        **{f"loss/{name}": value for name, value in record.terms.items()},
        "loss/validation": record.validation_loss,
        "accuracy/train": record.train_accuracy,
        "accuracy/validation": record.validation_accuracy,
        "speed/learning_rate": record.learning_rate,
        "speed/images_per_s": record.images_per_s,
    }
