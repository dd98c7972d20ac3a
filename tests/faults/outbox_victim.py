"""One child after another uses the outbox and is hurt at its own call: child n at its n-th.

`preload`: kill_at.c is loaded and counts every write, sync, truncation, unlink and rename.
Otherwise this runs under strace, which hurts every process at its W-th call of one kind; child n first
makes W - n empty calls, so that its n-th real one is hit.
All children work in the same folder: each one starts on what the last one left. What is safely stored,
and what the broker was given, is written down in a report.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from edge_road.runtime.events.event import Draft, Severity
from edge_road.runtime.events.eviction import Entry
from edge_road.runtime.events.outbox import Limits, Outbox

NO_FILE = 9999
EMPTY_CALLS: dict[str, Callable[[], object]] = {
    "pwrite64": lambda: os.pwrite(NO_FILE, b"", 0),
    "write": lambda: os.write(NO_FILE, b""),
    "fdatasync": lambda: os.fdatasync(NO_FILE),
    "fsync": lambda: os.fsync(NO_FILE),
    "ftruncate": lambda: os.ftruncate(NO_FILE, 0),
    "unlink": lambda: os.unlink(""),
    "rename": lambda: os.rename("", ""),
    "openat": lambda: os.open("", os.O_RDONLY),
}
LIMITS = Limits(disk=6000, memory=100_000)


def new_draft(kind: str, severity: Severity, details: dict[str, object]) -> Draft:
    return Draft(kind, severity, 1, "2026-01-01T00:00:00.000Z", False, details)


def note(report: int, word: str, entries: list[Entry]) -> None:
    os.write(report, "".join(f"{word}\t{entry.line}\n" for entry in entries).encode())


def use(folder: Path, boot: str, report: int, generator: random.Random) -> None:
    outbox = Outbox(folder / "events.sqlite", "van", boot, LIMITS, new_draft)
    for number in range(5):
        severities = [Severity(generator.randrange(3)) for _ in range(generator.randrange(1, 4))]
        fresh = outbox.record([new_draft("state", s, {"number": number}) for s in severities])
        if not outbox.degraded:
            note(report, "stored", fresh)
        taken = outbox.after(0, generator.randrange(4))
        note(report, "delivered", taken)  # the broker has them from here on
        outbox.delivered(entry.id for entry in taken)
    for _ in range(3):
        outbox.recover()
    if not outbox.degraded:  # what memory held is on the disk now
        note(report, "stored", outbox.after(0, 100_000))
    outbox.close()


def arm(call: str, when: int, number: int) -> None:
    if call == "preload":
        ctypes.c_int.in_dll(ctypes.CDLL(None), "kill_at").value = number
        return
    for _ in range(when - number):
        with contextlib.suppress(OSError):
            EMPTY_CALLS[call]()


def main() -> None:
    folder, call, when, children = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    seed = int(sys.argv[5])
    report = os.open(folder / "report", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    hurt = 0
    for number in range(1, children + 1):
        child = os.fork()
        if child == 0:
            arm(call, when, number)
            use(folder, f"{call}-{seed}-{number}", report, random.Random(1000 * seed + number))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        hurt += os.WIFSIGNALED(status)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
            sys.exit(f"child {number} failed with {os.WEXITSTATUS(status)}")
    print(hurt)


main()
