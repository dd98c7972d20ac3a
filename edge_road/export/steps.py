"""Progress for people: one line for every step, with what came out and how long it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from edge_road.clock import Clock, SystemClock


@dataclass
class Outcome:
    text: str = ""


@dataclass
class Steps:
    clock: Clock = field(default_factory=SystemClock)

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
        print(f"{outcome.text:<62} {(self.clock.mono_ns() - start_ns) / 1e9:6.1f} s", flush=True)
