"""Locks in a study's folder: workers take trials in turn, and a dead worker's trial is known as such.

The kernel lets go of a lock when a process ends, however it ends. A worker on another machine, with
another folder, leaves no lock here, and its trials are left to it.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    with open(folder / ".lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def hold_trial(folder: Path, number: int) -> TextIO:
    """Held until the file is closed."""
    file = open(_path(folder, number), "a")  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def release_trial(folder: Path, number: int, held: TextIO) -> None:
    _path(folder, number).unlink(missing_ok=True)
    held.close()


def is_abandoned(folder: Path, number: int) -> bool:
    """Somebody here had this trial and is no more."""
    if not _path(folder, number).exists():
        return False
    try:
        hold_trial(folder, number).close()
    except BlockingIOError:
        return False
    return True


def _path(folder: Path, number: int) -> Path:
    return folder / f".trial-{number:04d}.lock"
