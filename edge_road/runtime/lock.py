"""One daemon per vehicle: a lock that the kernel lets go of when its owner dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge_road.errors import ConfigError
from edge_road.workspace import home


def lock_folder() -> Path:
    """What systemd gives us (RuntimeDirectory=), else a folder of the workspace."""
    given = os.environ.get("RUNTIME_DIRECTORY")
    return Path(given.split(":")[0]) if given else home() / "runs" / ".locks"


@contextmanager
def only_one(vehicle: str) -> Iterator[None]:
    path = lock_folder() / f"{vehicle}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigError(
            "the lock cannot be made",
            where=path,
            got=error.strerror,
            fix="set RUNTIME_DIRECTORY, and STATE_DIRECTORY for events, to folders that this user may write",
        ) from None
    try:
        _claim(descriptor, path, vehicle)
        yield
    finally:
        os.close(descriptor)


def owner_of(vehicle: str) -> int | None:
    """The process of the daemon that runs for this vehicle."""
    try:
        with open(lock_folder() / f"{vehicle}.lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = (lock_folder() / f"{vehicle}.lock").read_text()[:32].strip()
        return int(text) if text.isdigit() else None
    except OSError:
        return None
    return None


def _claim(descriptor: int, path: Path, vehicle: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode(errors="replace").strip()
        raise ConfigError(
            f"a daemon for the vehicle '{vehicle}' is already running",
            where=path,
            got=f"process {owner or '?'}",
            fix="stop it, or give this one another name: --set vehicle=NAME",
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
