"""What `make` makes, it also mends."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_an_environment_that_was_made_halfway_is_completed(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=tmp_path, check=True)
    words = ["make", f"PYTHON={sys.executable}", ".venv/bin/pip"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    python = tmp_path / ".venv" / "bin" / "python"
    assert subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "up to date" in done.stdout
