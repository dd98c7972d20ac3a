"""Plain rows in a log, a moving bar on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from edge_road.training.journal import EpochRecord
from edge_road.training.progress import open_progress

RECORD = EpochRecord(
    epoch=3,
    learning_rate=1e-3,
    loss=1.25,
    terms={"softmax": 0.75, "margin": 0.5},
    train_accuracy=0.912,
    validation_accuracy=0.954,
    validation_loss=0.2,
    seconds=75.4,
    images_per_s=40.0,
)


def shown(*, terminal: bool, width: int = 120) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    with open_progress(16, console) as progress:
        progress.note("continuing after epoch 2")
        progress.batch(2, 5, 10, {"loss": 1.5}, 0.8)
        progress.epoch(RECORD, is_best=True)
        progress.epoch(RECORD, is_best=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_log_gets_plain_rows_under_one_heading() -> None:
    note, heading, best, other = shown(terminal=False, width=40).splitlines()
    assert note == "continuing after epoch 2"
    assert heading.split() == ["epoch", "loss", "softmax", "margin", "train", "validation", "time"]
    assert best.split() == ["3/16", "1.2500", "0.7500", "0.5000", "91.2%", "95.4%", "1:15", "best"]
    assert other.split() == best.split()[:-1]
    assert len(heading) == len(other)


def test_a_log_has_no_control_characters() -> None:
    assert shown(terminal=False).isprintable() or "\x1b" not in shown(terminal=False)


def test_a_terminal_gets_a_bar_with_loss_and_time_left() -> None:
    text = shown(terminal=True)
    for words in ("epoch 3/16", "batch 5/10", "loss 1.500", "train 80.0%", "left"):
        assert words in text


def test_a_narrow_terminal_gets_the_rows_without_the_terms() -> None:
    text = shown(terminal=True, width=60)
    assert "softmax" not in text
    assert "95.4%" in text
