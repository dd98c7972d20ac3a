"""Row 27: a disk that is really full, five times over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_a_disk_that_fills_and_empties_loses_no_event(tmp_path: Path, fault_row) -> None:  # type: ignore[no-untyped-def]
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces here")
    done = subprocess.run(
        [unshare, "-rm", sys.executable, str(HERE / "full_disk.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert result["degraded"] == 5, "the disk was never full"
    assert result["recovered"] == 5
    assert result["seqs"] == list(range(len(result["seqs"])))
    assert len(result["seqs"]) >= 400
    note = f"{len(result['seqs'])} events, 5 times full, 0 lost"
    fault_row(27, "disk full", state="unchanged", reason="storage_degraded", how="tmpfs of 1 MiB", note=note)
