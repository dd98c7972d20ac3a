"""A checkpoint written while the kernel kills us, or says that the disk is full, at every single call."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkpoint_crashes import SHIFT

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory, root: Path) -> list[dict[str, Any]]:
    renames = "rename,renameat,renameat2"
    rules = [
        f"inject=fsync:signal=KILL:when={SHIFT['fsync']}",
        f"inject={renames}:signal=KILL:when={SHIFT['rename']}",
        f"inject=write:error=ENOSPC:when={SHIFT['write']}+",
    ]
    command = ["strace", "-f", "-qqq", "-o", os.devnull, "-e", f"trace=fsync,write,{renames}"]
    command += [word for rule in rules for word in ("-e", rule)]
    script = root / "tests" / "faults" / "checkpoint_crashes.py"
    done = subprocess.run(
        [*command, sys.executable, str(script), str(tmp_path_factory.mktemp("crashes"))],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("this machine allows no tracing")
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def of_kind(crashes: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [crash for crash in crashes if crash["kind"] == kind]


@pytest.mark.parametrize(("kind", "points"), [("fsync", 2), ("rename", 1)])
def test_killed_at_every_call_a_whole_checkpoint_is_there(
    kind: str, points: int, crashes: list[dict[str, Any]]
) -> None:
    *killed, survivor = of_kind(crashes, kind)
    assert [crash["code"] for crash in killed] == [-signal.SIGKILL] * points
    assert survivor["code"] == 0
    assert survivor["epoch"] == 3
    for crash in killed:
        assert crash["epoch"] in (2, 3)
        assert crash["whole"]
        assert crash["damaged"] == [], "no torn file ever has a checkpoint's name"


def test_a_full_disk_is_told_and_the_last_checkpoint_stays(crashes: list[dict[str, Any]]) -> None:
    *full, survivor = of_kind(crashes, "write")
    assert full
    assert survivor["epoch"] == 3
    for crash in full:
        assert crash["code"] == errno.ENOSPC
        assert crash["epoch"] == 2
        assert crash["whole"]
        assert crash["left"] == ["epoch-00001.safetensors", "epoch-00002.safetensors"], "nothing half-written"
