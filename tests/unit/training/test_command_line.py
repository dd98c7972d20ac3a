"""What the training commands have in common: recipe options, and the row that others are compared with."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.training import tune
from edge_road.training.command_line import row_of_reference, wishes_of
from edge_road.training.compare import main as compare
from edge_road.training.pool import main as pool
from edge_road.training.recipes import Wishes


@pytest.mark.parametrize(
    "parser", [compare._parser(), tune._parser(), pool._parser()], ids=["compare", "tune", "pool"]
)
def test_every_option_says_what_it_is_for(parser: argparse.ArgumentParser) -> None:
    assert [action.dest for action in parser._actions if not action.help] == []


def test_what_a_command_has_no_option_for_stays_as_the_recipe_says() -> None:
    chosen = compare._parser().parse_args(["--data", "photos", "--epochs", "2", "--set", "seed=1"])
    assert wishes_of(chosen) == Wishes(data=Path("photos"), epochs=2, overrides=["seed=1"])


def test_the_reference_is_the_usual_row_where_it_is_there() -> None:
    rows = ["mixup", "softmax"]
    assert row_of_reference(None, rows, "softmax") == "softmax"
    assert row_of_reference(None, rows, "nfm") == "mixup"
    assert row_of_reference("mixup", rows, "softmax") == "mixup"
    with pytest.raises(ConfigError, match="--reference") as caught:
        row_of_reference("sofmax", rows, "softmax")
    assert "softmax" in caught.value.details["to do"]
