"""What the commands of this stage share: numbers in, a line of progress out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

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


def show_line(line: str) -> None:
    """One line that the next one replaces; only a person at a terminal needs it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
