"""Run under strace: a child for every crash point of writing a checkpoint; prints what each one left.

strace ends (or fails) the n-th call of a kind in every process. A child makes harmless calls first, so
that the call it is to die at is its n-th.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from edge_road.training.checkpoint import Checkpoint, Identity, Notes, newest_checkpoint, write_checkpoint
from edge_road.training.journal import EpochRecord

SHIFT = {"fsync": 20, "rename": 20, "write": 2000}  # more than this process itself makes
IDENTITY = Identity(recipe="a", method="softmax", classes=("dry", "wet"), data="b", images=(3, 2))


def checkpoint(epoch: int) -> Checkpoint:
    def record(number: int) -> EpochRecord:
        rest = dict.fromkeys(("learning_rate", "loss", "train_accuracy", "validation_accuracy"), 0.5)
        late = {"validation_loss": 0.5, "seconds": 1.0, "images_per_s": 1.0}
        return EpochRecord(epoch=number, terms={}, **rest, **late)  # type: ignore[arg-type]

    notes = Notes(identity=IDENTITY, history=tuple(record(number + 1) for number in range(epoch)))
    return Checkpoint(notes, {"weights": torch.full((64, 64), float(epoch))})


def spend_syncs(folder: Path, count: int) -> None:
    with open(folder / "scratch", "wb") as file:
        for _ in range(count):
            os.fsync(file.fileno())


def spend_renames(folder: Path, count: int) -> None:
    (folder / "scratch").write_bytes(b"")
    for _ in range(count):
        os.replace(folder / "scratch", folder / "scratch")


def spend_writes(folder: Path, count: int) -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    for _ in range(count):
        os.write(descriptor, b"x")


SPEND: dict[str, Callable[[Path, int], None]] = {
    "fsync": spend_syncs,
    "rename": spend_renames,
    "write": spend_writes,
}


def child(run: Path, kind: str, point: int) -> int:
    """0: the checkpoint was written; 28: the disk was full; a signal otherwise."""
    SPEND[kind](run.parent, SHIFT[kind] - point)
    try:
        write_checkpoint(run, checkpoint(3), keep=2)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def crash(base: Path, run: Path, kind: str, point: int) -> dict[str, object]:
    shutil.copytree(base, run)
    if (pid := os.fork()) == 0:
        os._exit(child(run, kind, point))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    reports: list[str] = []
    found = newest_checkpoint(run, IDENTITY, reports.append)
    assert found is not None
    return {
        "kind": kind,
        "point": point,
        "code": code,
        "epoch": found.notes.epoch,
        "whole": bool((found.tensors["weights"] == found.notes.epoch).all()),
        "damaged": reports,
        "left": sorted(path.name for path in (run / "last").iterdir()),
    }


def main(folder: Path) -> None:
    for epoch in (1, 2):
        write_checkpoint(folder / "base", checkpoint(epoch), keep=2)
    for kind in SPEND:
        for point in range(1, SHIFT[kind]):
            told = crash(folder / "base", folder / f"{kind}-{point}" / "run", kind, point)
            print(json.dumps(told), flush=True)
            if told["code"] == 0:
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]))
