"""Which picture files lie below a folder: sorted, hidden ones skipped, every folder entered once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from edge_road.datasets.decode import IMAGE_SUFFIXES
from edge_road.errors import DataError


def folders_in(folder: Path) -> list[str]:
    """The names of the visible folders directly below."""
    return sorted(entry.name for entry in _visible(folder) if entry.is_dir())


def image_names(folder: Path, suffixes: tuple[str, ...] = IMAGE_SUFFIXES) -> list[str]:
    """Paths relative to `folder`, with `/`, of all plain picture files below it."""
    return sorted(_walk(folder, "", {_identity(parent) for parent in folder.resolve().parents}, suffixes))


def check_folder(path: Path, what: str) -> None:
    if not path.is_dir():
        raise DataError(
            f"{what} is not there" if not path.exists() else f"{what} is not a folder",
            where=path,
            fix="if it moved, give --data, `path` in the recipe's [data], or a link at its old place",
        )


def _walk(
    folder: Path, prefix: str, entered: set[tuple[int, int]], suffixes: tuple[str, ...]
) -> Iterator[str]:
    """A link may lead back to a parent, or to a folder that was entered already."""
    if _identity(folder) in entered:
        return
    entered.add(_identity(folder))
    for entry in _visible(folder):
        if entry.name.lower().endswith(suffixes):
            if entry.is_file():
                yield prefix + _text(entry)
        elif entry.is_dir():
            yield from _walk(folder / entry.name, f"{prefix}{_text(entry)}/", entered, suffixes)


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


def _visible(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise DataError("the folder cannot be read", where=folder, got=error.strerror) from None
    return sorted(shown, key=lambda entry: entry.name)


def _text(entry: os.DirEntry[str]) -> str:
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        raise DataError(
            "a file name is not UTF-8", where=os.fsencode(entry.path), fix="rename the file"
        ) from None
    return entry.name
