"""Files that are there whole or not at all: temporary sibling, fsync, rename, fsync of the folder."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_ALONE = fcntl.LOCK_EX | fcntl.LOCK_NB


def write_atomically(path: Path, content: bytes) -> None:
    """After a crash at any moment, `path` holds the old bytes or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_and_sync(file, content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_folder_atomically(path: Path, contents: Mapping[str, bytes]) -> None:
    """The same for a whole folder: old or new, never a mixture, never absent."""
    with _hidden_sibling(path) as temporary:
        for name, content in contents.items():
            with open(temporary / name, "wb") as file:
                _write_and_sync(file, content)
        sync_folder(temporary)
        if path.exists():
            _exchange(temporary, path)
        else:
            os.rename(temporary, path)
        sync_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A hidden sibling to write into, which becomes `path` when the block ends well, else is removed."""
    with _hidden_sibling(path) as temporary:
        yield temporary
        os.rename(temporary, path)
        sync_folder(path.parent)


def check_writable(folder: Path) -> None:
    """Before long work, so that its result is not lost for want of a place; nothing is made yet."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(there)) from None


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sync_folder(path: Path) -> None:
    with _opened(path) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _hidden_sibling(path: Path) -> Iterator[Path]:
    """Locked while it is written; what writers of the same name left when they were killed goes first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    with contextlib.ExitStack() as stack:
        with _locked(path.parent):  # so that nobody removes a folder between its making and its locking
            temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            stack.enter_context(_locked(temporary))
        temporary.chmod(0o755)
        yield temporary


def _remove_abandoned(path: Path) -> None:
    form = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    with contextlib.suppress(OSError), _locked(path.parent, _ALONE):
        for folder in path.parent.iterdir():
            if form.fullmatch(folder.name):
                with contextlib.suppress(OSError), _locked(folder, _ALONE):
                    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Until the block or the process ends, however it ends; alone only where nobody else has it."""
    with _opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, how)
        except OSError:  # some network disks know no locks: there we write, and remove nothing
            if how == _ALONE:
                raise
        yield


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_and_sync(file: BinaryIO, content: bytes) -> None:
    """Readable for others: one account exports, another one drives."""
    with contextlib.suppress(PermissionError):  # a FAT disk knows no modes
        os.fchmod(file.fileno(), 0o644)
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _exchange(first: Path, second: Path) -> None:
    """Swap two names in one step (Linux renameat2), so that no reader ever finds neither."""
    libc = ctypes.CDLL(None, use_errno=True)
    paths = (_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second))
    if libc.renameat2(*paths, _RENAME_EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(second))
