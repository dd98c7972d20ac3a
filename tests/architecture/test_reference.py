"""The reference is made from the code: after a change of settings, `python docs/make_reference.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the reference covers every stage")


def test_the_reference_is_what_the_code_says(root: Path) -> None:
    made = runpy.run_path(str(root / "docs" / "make_reference.py"), run_name="reference")
    assert (root / "docs" / "reference.md").read_text() == made["reference"]()
