"""Writes docs/reference.md from the settings models themselves: `python docs/make_reference.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from pydantic import BaseModel  # noqa: E402
from pydantic.fields import FieldInfo  # noqa: E402
from pydantic_core import PydanticUndefined  # noqa: E402

from edge_road import errors  # noqa: E402
from edge_road.cli import COMMANDS  # noqa: E402
from edge_road.export.target import Target  # noqa: E402
from edge_road.meanings import meanings  # noqa: E402
from edge_road.recipe import Recipe  # noqa: E402
from edge_road.road_state import RoadState  # noqa: E402
from edge_road.runtime.vehicle import Vehicle  # noqa: E402

PAGE = ROOT / "docs" / "reference.md"
LONGEST_DEFAULT = 60
TAGS = ("kind", "name")
"""keys by whose only value a section is told from its alternatives"""


def reference() -> str:
    parts = [
        "# Reference",
        "Made from the code by `python docs/make_reference.py`; a test keeps it true.",
        "## Commands",
        _table(
            ("command", "what it does"), ((f"`edge-road {n}`", text) for n, (_, text) in COMMANDS.items())
        ),
        "## Exit codes",
        "```\n" + (errors.__doc__ or "").strip() + "\n```",
        *_section("Recipe", "training/recipes/*.toml", Recipe),
        *_section("Target", "export/targets/*.toml", Target),
        *_section("Vehicle", "runtime/vehicles/*.toml", Vehicle),
        *_section("Message", "one JSON object a line", RoadState),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, where: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"## {title}"
    yield where
    for path, part in _parts(model):
        if path:
            yield f"### `[{path}]`" + (f"\n\n{_first_line(part)}" if part.__doc__ else "")
        rows = [_row(part, name) for name in part.model_fields if _is_key(part, name)]
        if rows:
            yield _table(("key", "default", "meaning"), rows)


def _parts(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """The model and all models inside it, each with its TOML path."""
    yield path, model
    for name, field in model.model_fields.items():
        below = f"{path}.{name}" if path else name
        found = _models_in(field)
        for part in found:
            yield from _parts(part, below if len(found) == 1 else f"{below}: {_tag(part)}")


def _models_in(field: FieldInfo) -> list[type[BaseModel]]:
    return list(dict.fromkeys(_walk(field.annotation)))


def _walk(kind: Any) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    elif get_origin(kind) is not dict:
        for inner in get_args(kind):
            yield from _walk(inner)


def _tag(model: type[BaseModel]) -> str:
    """How a kind is chosen: `kind = "folder"`."""
    for name in TAGS:
        if name in model.model_fields and (values := get_args(model.model_fields[name].annotation)):
            return f'{name} = "{values[0]}"'
    return model.__name__


def _is_key(part: type[BaseModel], name: str) -> bool:
    """A section has a heading of its own; what it means to leave it out stands with the keys."""
    return not _models_in(part.model_fields[name]) or _explained(part, name) is not None


def _row(part: type[BaseModel], name: str) -> tuple[str, str, str]:
    field = part.model_fields[name]
    return f"`{field.alias or name}`", _default(field), _meaning(part, name).replace("|", "\\|")


def _meaning(part: type[BaseModel], name: str) -> str:
    """Its own docstring, or that of the model which it takes the key over from; no key goes without."""
    found = _explained(part, name)
    if found is None and name in TAGS and len(get_args(part.model_fields[name].annotation)) == 1:
        return "chooses this section"
    if found is None:
        raise ValueError(f"{part.__module__}.{part.__name__}.{name} needs a docstring with its meaning")
    return " ".join(found.split())


def _explained(part: type[BaseModel], name: str) -> str | None:
    kinds = (kind for kind in part.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel)
    return next((text for kind in kinds if (text := meanings(kind).get(name))), None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return "none"
    text = (
        f"{value:.4g}"
        if isinstance(value, float)
        else str(list(value) if isinstance(value, tuple) else value)
    )
    return f"`{text}`" if len(text) <= LONGEST_DEFAULT else "see the file"


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(row).replace("\n", " ") + " |" for row in (head, ("---",) * len(head), *rows)]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(reference())
    print(PAGE.relative_to(ROOT))
