"""What the commands of this stage share: numbers and recipes in, a line of progress out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from edge_road.errors import ConfigError, suggestion
from edge_road.training.recipes import Wishes

_MOST = 2**63 - 1
"""beyond it, libraries that are asked for random numbers give up"""


def whole_number(least: int) -> Callable[[str], int]:
    """A type for argparse."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{least} or more, not {text}")
        if int(text) > _MOST:
            raise argparse.ArgumentTypeError(f"at most {_MOST}, not {text}")
        return int(text)

    return number


def add_recipe_options(parser: argparse.ArgumentParser, *, method: bool = True) -> None:
    """`method`: one is chosen; else the command has several."""
    add = parser.add_argument
    shipped = "a TOML file, or the name of one in training/recipes (default: synthetic)"
    add("--recipe", metavar="FILE", help=shipped)
    add("--data", type=Path, metavar="PATH", help="a folder with dry/ wet/ icy/, or an RSCD tree")
    add("--weights", metavar="FILE", help="backbone weights (.safetensors), or: none, hub")
    if method:
        add("--method", metavar="NAME", help="e.g. softmax (docs/methods.md has all)")
    add("--epochs", type=whole_number(1), metavar="N", help="passes over the training pictures")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="any key of the recipe, e.g. optimizer.learning_rate=3e-4",
    )


def wishes_of(chosen: argparse.Namespace) -> Wishes:
    given = vars(chosen)
    return Wishes(**{field.name: given[field.name] for field in fields(Wishes) if field.name in given})


def row_of_reference(wanted: str | None, rows: Sequence[str], usual: str) -> str:
    """The wanted row; without a wish the usual one, where there is one of that name."""
    if wanted is None:
        return usual if usual in rows else rows[0]
    if wanted not in rows:
        raise ConfigError(
            "no such row to compare with",
            where="--reference",
            got=wanted,
            expected=", ".join(rows),
            fix=suggestion(wanted, rows),
        )
    return wanted


def show_line(line: str) -> None:
    """One line that the next one replaces; only a person at a terminal needs it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
