"""The reference is made from the code: after a change of settings, `python docs/make_reference.py`."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Literal

import pytest

from edge_road.config import StrictModel

pytest.importorskip("torch", reason="the reference covers every stage")


class Plain(StrictModel):
    kind: Literal["plain"]
    said: int = 1
    """what it
    means"""
    silent: int = 1


class Special(Plain):
    said: int = 2


@pytest.fixture(scope="module")
def made(root: Path) -> dict[str, Any]:
    return runpy.run_path(str(root / "docs" / "make_reference.py"), run_name="reference")


def test_the_reference_is_what_the_code_says(root: Path, made: dict[str, Any]) -> None:
    assert (root / "docs" / "reference.md").read_text() == made["reference"]()


def test_a_key_without_a_meaning_is_refused(made: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"Plain\.silent needs a docstring"):
        made["_meaning"](Plain, "silent")


@pytest.mark.parametrize(("key", "meaning"), [("said", "what it means"), ("kind", "chooses this section")])
def test_a_meaning_is_taken_over_with_its_key(made: dict[str, Any], key: str, meaning: str) -> None:
    assert made["_meaning"](Special, key) == meaning
