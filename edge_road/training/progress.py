"""What a person sees of a training: one row an epoch, and on a terminal a bar that moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import rich.progress
from rich.console import Console
from rich.text import Text

from edge_road.training.journal import EpochRecord


class Progress(Protocol):
    def note(self, text: str) -> None: ...

    def batch(
        self, epoch: int, batch: int, batches: int, losses: Mapping[str, float], accuracy: float
    ) -> None: ...

    def epoch(self, record: EpochRecord, is_best: bool) -> None: ...


class Silence:
    """For all but the first of several processes."""

    def note(self, text: str) -> None:
        pass

    def batch(
        self, epoch: int, batch: int, batches: int, losses: Mapping[str, float], accuracy: float
    ) -> None:
        pass

    def epoch(self, record: EpochRecord, is_best: bool) -> None:
        pass


class Rows(Silence):
    """One row an epoch under a heading; loss terms are left out where the terminal is narrow."""

    def __init__(self, console: Console, epochs: int) -> None:
        self._console = console
        self._epochs = epochs
        self._has_heading = False

    def note(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def epoch(self, record: EpochRecord, is_best: bool) -> None:
        cells = self._cells(record)
        if not self._has_heading:
            self._has_heading = True
            self._console.print(Text("  ".join(cells), style="dim"), soft_wrap=True)
        row = Text("  ".join(f"{text:>{len(name)}}" for name, text in cells.items()))
        row.append("  best" if is_best else "", style="green")
        self._console.print(row, soft_wrap=True)

    def _cells(self, record: EpochRecord) -> dict[str, str]:
        """Heading, as wide as its column -> text."""
        terms = {f"{name:>6}": f"{value:.4f}" for name, value in record.terms.items()}
        before = {"  epoch": f"{record.epoch}/{self._epochs}", "   loss": f"{record.loss:.4f}"}
        after = {
            "  train": f"{record.train_accuracy:.1%}",
            "validation": f"{record.validation_accuracy:.1%}",
            " time": _minutes(record.seconds),
        }
        every = before | terms | after
        fits = sum(len(name) + 2 for name in every) + len("best") <= self._console.width
        return every if fits or not self._console.is_terminal else before | after


class Bar(Rows):
    def __init__(self, console: Console, epochs: int, bar: rich.progress.Progress) -> None:
        super().__init__(console, epochs)
        self._bar = bar
        self._task = bar.add_task("preparing", total=None, losses="", left="")

    def batch(
        self, epoch: int, batch: int, batches: int, losses: Mapping[str, float], accuracy: float
    ) -> None:
        if self._bar.tasks[0].total is None:
            self._bar.reset(
                self._task, total=self._epochs * batches, completed=epoch * batches, losses="", left="left"
            )
        self._bar.update(
            self._task,
            description=f"epoch {epoch + 1}/{self._epochs}",
            completed=epoch * batches + batch,
            losses=f"batch {batch}/{batches}  loss {losses['loss']:.3f}  train {accuracy:.1%}",
        )


@contextmanager
def open_progress(epochs: int, console: Console | None = None) -> Iterator[Progress]:
    console = console or Console(highlight=False)
    if not console.is_terminal:
        yield Rows(console, epochs)
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(bar_width=24),
        rich.progress.TextColumn("{task.fields[losses]}"),
        rich.progress.TimeRemainingColumn(compact=True),
        rich.progress.TextColumn("{task.fields[left]}"),
    )
    with rich.progress.Progress(*columns, console=console, transient=True) as bar:
        yield Bar(console, epochs, bar)


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
