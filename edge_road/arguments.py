"""Kinds of command-line values that several commands share."""

from __future__ import annotations

import argparse
import math


def seconds(text: str) -> float:
    """More than none, and not for ever."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
