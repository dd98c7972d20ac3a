"""Rivals take turns, and ratios are taken within a round: what slows the machine down slows all of them."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Spread:
    """The median of all rounds, with the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits: int = 2) -> str:
        return f"{self.median:.{digits}f} [{self.low:.{digits}f} .. {self.high:.{digits}f}]"


def take_turns(
    rivals: Mapping[str, Callable[[], Measured]], rounds: int, optional: Container[str] = ()
) -> dict[str, list[Measured]]:
    """Each rival once in every round; the order turns, so that none always follows the same one.

    An optional one that fails is named on the terminal and left out of what is returned.
    """
    measured: dict[str, list[Measured]] = {name: [] for name in rivals}
    for number in range(rounds):
        names = list(measured)
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            try:
                measured[name].append(rivals[name]())
            except Exception as error:
                if name not in optional:
                    raise
                print(f"  left out: {name}: {error}", file=sys.stderr, flush=True)
                del measured[name]
    return measured


def ratio(first: Sequence[float], second: Sequence[float]) -> Spread:
    """first / second, round by round."""
    return Spread.of([a / b for a, b in zip(first, second)])
