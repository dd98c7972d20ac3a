"""What the keys of a settings model mean: the docstrings below them, read from the source when asked for.

pydantic can do the same while a model is made, but then every start of the daemon reads its own source.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import Any

from pydantic import BaseModel


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """key -> meaning, of the keys that this very class explains"""
    (definition,) = ast.parse(dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        key.target.id: inspect.cleandoc(below.value.value)
        for key, below in pairwise(definition.body)
        if isinstance(key, ast.AnnAssign)
        and isinstance(key.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def explain(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Write the meanings into the model's JSON Schema."""
    for key, meaning in meanings(model).items():
        name = model.model_fields[key].alias or key
        schema["properties"][name] = dict(
            sorted({**schema["properties"][name], "description": meaning}.items())
        )
