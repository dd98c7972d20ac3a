"""Values on the command line."""

from __future__ import annotations

import argparse

import pytest

from edge_road.arguments import seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "soon", ""])
def test_a_daemon_is_not_told_to_run_for_a_time_that_never_ends_or_begins(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="seconds above 0"):
        seconds(text)


def test_fractions_of_a_second_are_seconds() -> None:
    assert seconds("0.5") == 0.5
