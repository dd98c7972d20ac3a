"""What a study may vary: keys of the recipe, each with a range or a choice.

method.delta_d=0.5:6          evenly between two numbers
method.sigma=log:0.02:0.5     evenly in the logarithm
training.batch_size=int:16:64 whole numbers
method.centroids=naive,partial
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from edge_road.errors import ConfigError

Kind = Literal["even", "log", "int", "choice"]


@dataclass(frozen=True)
class Range:
    key: str
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    choices: tuple[str, ...] = ()

    def suggest(self, trial: Any) -> str:
        """As the value of an override; `trial` is optuna's."""
        if self.kind == "choice":
            return str(trial.suggest_categorical(self.key, self.choices))
        if self.kind == "int":
            return str(trial.suggest_int(self.key, int(self.low), int(self.high)))
        return repr(float(trial.suggest_float(self.key, self.low, self.high, log=self.kind == "log")))

    def holds(self, value: object) -> bool:
        if self.kind == "choice":
            return str(value) in self.choices
        return isinstance(value, (int, float)) and self.low <= value <= self.high

    def ends(self) -> tuple[str, ...]:
        """Values that the recipe must accept."""
        if self.kind == "choice":
            return self.choices
        return tuple(str(int(end)) if self.kind == "int" else repr(end) for end in (self.low, self.high))


def parse_ranges(texts: Iterable[str]) -> tuple[Range, ...]:
    ranges = tuple(map(parse_range, texts))
    keys = [found.key for found in ranges]
    if doubled := sorted({key for key in keys if keys.count(key) > 1}):
        raise ConfigError("a key can have one range only", where="--over", got=", ".join(doubled))
    return ranges


def parse_range(text: str) -> Range:
    key, _, wanted = (part.strip() for part in text.partition("="))
    if not key or not wanted:
        raise _not_a_range(text)
    if ":" not in wanted:
        choices = tuple(choice.strip() for choice in wanted.split(","))
        if len(choices) < 2 or not all(choices):
            raise _not_a_range(text)
        return Range(key, "choice", choices=choices)
    *kinds, low, high = wanted.split(":")
    kind: Any = kinds[0] if kinds else "even"
    if len(kinds) > 1 or kind not in ("even", "log", "int"):
        raise _not_a_range(text)
    return _checked(Range(key, kind, _number(low, text), _number(high, text)), text)


def _checked(found: Range, text: str) -> Range:
    is_whole = found.low.is_integer() and found.high.is_integer()
    if (
        found.low >= found.high
        or (found.kind == "log" and found.low <= 0)
        or (found.kind == "int" and not is_whole)
    ):
        raise _not_a_range(text)
    return found


def _number(digits: str, text: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        raise _not_a_range(text) from None
    if not math.isfinite(number):
        raise _not_a_range(text)
    return number


def _not_a_range(text: str) -> ConfigError:
    return ConfigError(
        "this is no range",
        where="--over",
        got=repr(text),
        expected="key=low:high, key=log:low:high, key=int:low:high or key=one,other; low below high",
        fix="for example: --over method.delta_d=0.5:6 --over method.sigma=log:0.02:0.5",
    )
