"""Passwords and tokens: in files of their own, never in the vehicle file, never in a log."""

from __future__ import annotations

from pathlib import Path

from edge_road.errors import ConfigError

LARGEST_BYTES = 4096


def read_secret(path: Path) -> str:
    """The first line of a small file."""
    try:
        with open(path, "rb") as file:
            lines = file.read(LARGEST_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        got = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError("a secret cannot be read", where=path, got=got) from None
    if not lines or not lines[0].strip():
        raise ConfigError("a secret is empty", where=path, expected="one line of text")
    return lines[0].strip()
