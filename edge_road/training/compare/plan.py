"""What is to be trained: every chosen method, with every varied value, on every fold or seed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from edge_road.errors import ConfigError, suggestion
from edge_road.recipe import Recipe
from edge_road.recipe_data import DrawnSplits
from edge_road.recipe_method import METHOD_KINDS
from edge_road.training.recipes import Wishes, read_recipe

Part = Literal["fold", "seed"]
SHARED_KEYS = ("sigma", "passes")
"""what the recipe's method says of these holds for all: they meet the same noise in the same way"""


@dataclass(frozen=True)
class Trial:
    """One training: a row of the table on one fold or with one seed."""

    row: str
    part: Part
    number: int
    recipe: Recipe

    @property
    def title(self) -> str:
        return f"{self.row}, {self.part} {self.number + 1}"

    @property
    def folder(self) -> str:
        return re.sub(r"[^a-z0-9_.=-]+", ",", f"{self.row}-{self.part}{self.number}".lower())


@dataclass(frozen=True)
class Variation:
    """A key of the recipe and the values it shall take."""

    key: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Variation:
        key, separator, values = text.partition("=")
        if not separator or not key.strip() or not all(value.strip() for value in values.split(",")):
            raise ConfigError(
                "a variation is section.key=value,value", where="--vary", got=text, fix="method.delta_d=1,3,5"
            )
        return cls(key.strip(), tuple(value.strip() for value in values.split(",")))


def plan_trials(
    wishes: Wishes, methods: Sequence[str], part: Part, count: int, variations: Sequence[Variation] = ()
) -> list[Trial]:
    """All rows of the first fold or seed, then all of the second: what is interrupted is comparable."""
    base = read_recipe(wishes)
    _check_methods(methods)
    _check_keys(methods, [*wishes.overrides, *(variation.key for variation in variations)])
    if part == "fold" and not isinstance(base.data, DrawnSplits):
        raise ConfigError(
            "cross-validation draws its own test pictures, which these have not",
            where="--folds",
            got=f"data.kind = {base.data.kind}",
            expected="pictures in class folders, or a table of them",
            fix="--seeds N trains on the one split with several seeds",
        )
    rows = list(_rows(wishes, base, methods, variations))
    return [
        Trial(row, part, number, read_recipe(replace(asked, overrides=[*asked.overrides, *changes])))
        for number in range(count)
        for changes in [_of_part(base, part, number, count)]
        for row, asked in rows
    ]


def _rows(
    wishes: Wishes, base: Recipe, methods: Sequence[str], variations: Sequence[Variation]
) -> Iterator[tuple[str, Wishes]]:
    for method in methods:
        shared = [f"method.{key}={value}" for key, value in _shared(base).items()]
        wanted = [text for text in [*shared, *wishes.overrides] if _concerns(text, method)]
        mine = [variation for variation in variations if _concerns(variation.key, method)]
        for values in product(*(variation.values for variation in mine)):
            varied = [f"{variation.key}={value}" for variation, value in zip(mine, values)]
            names = [f"{v.key.rpartition('.')[2]}={value}" for v, value in zip(mine, values)]
            yield " ".join([method, *names]), replace(wishes, method=method, overrides=[*wanted, *varied])


def _of_part(base: Recipe, part: Part, number: int, count: int) -> list[str]:
    own = [f"seed={base.seed + number}", "training.keep_checkpoints=1"]
    return [*own, f"data.folds={count}", f"data.fold={number}"] if part == "fold" else own


def _shared(base: Recipe) -> dict[str, object]:
    return {key: getattr(base.method, key) for key in SHARED_KEYS if key in base.method.model_fields_set}


def _concerns(override: str, method: str) -> bool:
    """A key of the method section belongs to the methods that know it."""
    section, _, key = override.partition("=")[0].strip().partition(".")
    return section != "method" or key in METHOD_KINDS[method].model_fields


def _check_methods(methods: Sequence[str]) -> None:
    for name in methods:
        if name not in METHOD_KINDS:
            raise ConfigError(
                "no such method",
                where="--methods",
                got=name,
                expected=", ".join(METHOD_KINDS),
                fix=suggestion(name, METHOD_KINDS),
            )
    if not methods or len(set(methods)) != len(methods):
        raise ConfigError("each method once", where="--methods", got=", ".join(methods) or "none")


def _check_keys(methods: Sequence[str], overrides: Sequence[str]) -> None:
    for override in overrides:
        if not any(_concerns(override, method) for method in methods):
            raise ConfigError(
                "none of the methods has this key",
                where="--set or --vary",
                got=override.partition("=")[0],
                expected=", ".join(dict.fromkeys(k for m in methods for k in METHOD_KINDS[m].model_fields)),
            )
