"""Every benchmark finds what it measures: none is left behind when a module moves."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="benchmarks need all of the product, not only the vehicle part")

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__main__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_benchmark_can_be_imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert runpy.run_path(str(path), run_name="not_main")["__doc__"]
