"""docs/evaluation.md names every field of report.json."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from edge_road.evaluation.report import Report


def fields_below(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, field in model.model_fields.items():
        names.add(field.alias or name)
        for inner in models_in(field.annotation):
            names |= fields_below(inner)
    return names


def models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


FIELDS = sorted(fields_below(Report))


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_the_report_is_documented(name: str, root: Path) -> None:
    text = (root / "docs" / "evaluation.md").read_text(encoding="utf-8")
    schema = text[text.index("## report.json") : text.index("## Smoke test")]
    assert re.search(rf"`(\w+\.)*\.?{name}(\[\])?`", schema), name


def test_the_walk_reaches_the_innermost_fields() -> None:
    assert {"schema", "auroc", "times_right", "icy", "missed_ice", "centroid_margin"} <= set(FIELDS)
