"""Progress for people: one line for every step, with what came out and how long it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from edge_road.clock import Clock, SystemClock


@dataclass
class Outcome:
    text: str = ""


@dataclass
class Steps:
    clock: Clock = field(default_factory=SystemClock)
    durations_s: dict[str, float] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, title: str) -> Iterator[Outcome]:
        """The caller sets the text of the outcome; an error leaves the line without one."""
        print(f"  {title:<22}", end="", flush=True)
        outcome, start_ns = Outcome(), self.clock.mono_ns()
        try:
            yield outcome
        except BaseException:
            print("failed", flush=True)
            raise
        self.durations_s[title] = round((self.clock.mono_ns() - start_ns) / 1e9, 3)
        print(f"{outcome.text:<46} {self.durations_s[title]:6.1f} s", flush=True)
        for line in self._pending:
            print(f"  {'':<22}{line}", flush=True)
        self._pending.clear()

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Printed after the step that is under way."""
        self._pending.extend(table_lines(header, rows))


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in (header, *rows)
    ]
