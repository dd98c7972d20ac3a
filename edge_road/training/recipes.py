"""From the command line to a recipe: its file, the shortcuts and overrides, absolute paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tomli_w

from edge_road.conditions import STATES
from edge_road.config import load_settings
from edge_road.datasets.guess import guess_classes, guess_kind
from edge_road.recipe import Recipe
from edge_road.recipe_data import SyntheticData
from edge_road.run_record import RECIPE_FILE
from edge_road.workspace import shipped

DEFAULT_RECIPE = "synthetic"
_NOT_FILES = ("none", "hub")


@dataclass(frozen=True)
class Wishes:
    """What the command line asks for; what is None stays as the recipe says."""

    recipe: str | None = None
    run: Path | None = None
    data: Path | None = None
    weights: str | None = None
    method: str | None = None
    epochs: int | None = None
    overrides: list[str] = field(default_factory=list)


def read_recipe(wishes: Wishes) -> Recipe:
    path = find_recipe(wishes)
    plain = load_settings(Recipe, path)
    asked = [*_left_out(plain), *_shortcuts(wishes, plain), *map(_from_here, wishes.overrides)]
    wanted = load_settings(Recipe, path, asked)
    return with_absolute_paths(wanted, path.resolve().parent)


def find_recipe(wishes: Wishes) -> Path:
    """A file, the name of a recipe that comes with the code, or that of a run to be continued."""
    if wishes.recipe is None and wishes.run is not None and (wishes.run / RECIPE_FILE).is_file():
        return wishes.run / RECIPE_FILE
    chosen = Path(wishes.recipe or DEFAULT_RECIPE).expanduser()
    is_name = chosen.suffix == "" and len(chosen.parts) == 1 and not chosen.is_file()
    return shipped("recipes", str(chosen)) if is_name else chosen


def with_absolute_paths(recipe: Recipe, base: Path) -> Recipe:
    """So that a recipe means the same wherever its copy lies; what is absolute stays, also as a link."""
    changed: dict[str, object] = {}
    if not isinstance(recipe.data, SyntheticData):
        path = _kept_or_absolute(base, recipe.data.path)
        changed["data"] = recipe.data.model_copy(update={"path": path})
    if recipe.model.weights not in _NOT_FILES:
        weights = str(_kept_or_absolute(base, recipe.model.weights))
        changed["model"] = recipe.model.model_copy(update={"weights": weights})
    return recipe.model_copy(update=changed)


def _left_out(recipe: Recipe) -> list[str]:
    """Sections that the file leaves to their defaults, as overrides: their keys need to know of what kind."""
    chosen = {"data": f"data.kind={recipe.data.kind}", "method": f"method.name={recipe.method.name}"}
    return [override for section, override in chosen.items() if section not in recipe.model_fields_set]


def _shortcuts(wishes: Wishes, recipe: Recipe) -> list[str]:
    """As overrides; a section keeps its other keys when its kind stays."""
    overrides = []
    if wishes.data is not None:
        path = _absolute(Path.cwd(), wishes.data)
        kind = guess_kind(path)
        overrides += [] if recipe.data.kind == kind else [f"data={{kind = '{kind}'}}"]
        overrides.append(f"data.path={_quoted(path)}")
        if kind == "folder" and path.is_dir() and "classes" not in recipe.data.model_fields_set:
            classes = guess_classes(path)  # as `edge-road data check` reads them
            overrides += [] if classes == STATES else [f"data.classes={list(classes)}"]
    if wishes.method is not None and wishes.method != recipe.method.name:
        overrides.append(f"method={{name = {_quoted(wishes.method)}}}")
    if wishes.weights is not None:
        overrides.append(_from_here(f"model.weights={wishes.weights}"))
    if wishes.epochs is not None:
        overrides.append(f"training.epochs={wishes.epochs}")
    return overrides


def _from_here(override: str) -> str:
    """Paths on the command line count from the current folder, those in a file from its own."""
    key, _, value = (part.strip() for part in override.partition("="))
    value = value.strip("\"'")
    if key not in ("data.path", "model.weights") or value in _NOT_FILES:
        return override
    return f"{key}={_quoted(_absolute(Path.cwd(), value))}"


def _kept_or_absolute(base: Path, path: str | Path) -> Path:
    return Path(path) if Path(path).is_absolute() else _absolute(base, path)


def _absolute(base: Path, path: str | Path) -> Path:
    return (base / Path(path).expanduser()).resolve()


def _quoted(value: object) -> str:
    return tomli_w.dumps({"value": str(value)}).partition("=")[2].strip()
