"""Runs in a mount namespace of its own: the outbox on a disk of 1 MiB that is filled and freed again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from edge_road.runtime.events.event import Draft, Severity, parse_event
from edge_road.runtime.events.outbox import Limits, Outbox


def new_draft(kind: str, severity: Severity, details: dict[str, object]) -> Draft:
    return Draft(kind, severity, 1, "2026-01-01T00:00:00.000Z", False, details)


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def main() -> None:
    folder = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    outbox = Outbox(folder / "e.sqlite", "van", "b", Limits(10**6, 10**6), new_draft)
    degraded = recovered = 0
    for round_number in range(5):
        outbox.record([new_draft("state", Severity.NOTE, {"round": round_number}) for _ in range(20)])
        fill(folder / "ballast")
        for _ in range(60):
            outbox.record([new_draft("state", Severity.NOTE, {"text": "x" * 200})])
        degraded += outbox.degraded
        os.unlink(folder / "ballast")
        outbox.recover()
        recovered += not outbox.degraded
    outbox.close()
    again = Outbox(folder / "e.sqlite", "van", "c", Limits(10**6, 10**6), new_draft)
    seqs = [e.seq for e in (parse_event(entry.line) for entry in again.after(0, 10**6)) if e.boot_id == "b"]
    print(json.dumps({"degraded": degraded, "recovered": recovered, "seqs": seqs}))


main()
