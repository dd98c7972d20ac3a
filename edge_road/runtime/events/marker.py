"""The highest event number of each unsettled boot, in a small file that is overwritten in place.

A full disk still takes it, and a log that was cut cannot hide how much is missing.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SLOT = 128
SLOTS = 16


@dataclass(frozen=True)
class Mark:
    boot_id: str
    seq: int


class Marker:
    """What it cannot write it does not write: it is a second witness, not the store."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if os.fstat(self._descriptor).st_size < SLOT * SLOTS:
                os.pwrite(self._descriptor, bytes(SLOT * SLOTS), 0)  # claims the room while there is some
        self._slots: list[Mark | None] = [self._read(number) for number in range(SLOTS)]

    def marks(self) -> list[Mark]:
        return [mark for mark in self._slots if mark is not None]

    def write(self, mark: Mark, durable: bool) -> None:
        boots = [slot.boot_id if slot else None for slot in self._slots]
        for wanted in (mark.boot_id, None):
            if wanted in boots:
                return self._put(boots.index(wanted), mark, durable)

    def forget(self, boots: Iterable[str]) -> None:
        """The store knows what became of these."""
        for number, mark in enumerate(self._slots):
            if mark is not None and mark.boot_id in boots:
                self._put(number, None, durable=False)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _put(self, number: int, mark: Mark | None, durable: bool) -> None:
        self._slots[number] = mark
        if self._descriptor is None:
            return
        text = "" if mark is None else f"{mark.boot_id} {mark.seq} {_crc(mark)}"
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, text.encode().ljust(SLOT, b"\0"), number * SLOT)
            if durable:
                os.fdatasync(self._descriptor)

    def _read(self, number: int) -> Mark | None:
        if self._descriptor is None:
            return None
        try:
            slot = os.pread(self._descriptor, SLOT, number * SLOT)
            boot_id, seq, crc = slot.rstrip(b"\0").decode().split()
            mark = Mark(boot_id, int(seq))
            return mark if int(crc) == _crc(mark) else None
        except (OSError, ValueError):
            return None


def _crc(mark: Mark) -> int:
    return zlib.crc32(f"{mark.boot_id} {mark.seq}".encode())
