"""Every recipe, target and vehicle that we ship loads, and survives being written and read again."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from edge_road.config import StrictModel, load_settings, settings_digest, write_settings

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "training/recipes": ("edge_road.recipe", "Recipe"),
    "export/targets": ("edge_road.export.target", "Target"),
    "runtime/vehicles": ("edge_road.runtime.vehicle", "Vehicle"),
}
SHIPPED = [
    pytest.param(path, *kind, id=str(path.relative_to(ROOT)))
    for folder, kind in KINDS.items()
    for path in sorted((ROOT / folder).glob("*.toml"))
]


@pytest.mark.parametrize(("path", "module", "name"), SHIPPED)
def test_shipped_file_loads_and_round_trips(path: Path, module: str, name: str, tmp_path: Path) -> None:
    kind: type[StrictModel] = getattr(importlib.import_module(module), name)
    settings = load_settings(kind, path)
    write_settings(settings, tmp_path / "again.toml")
    assert settings_digest(load_settings(kind, tmp_path / "again.toml")) == settings_digest(settings)


def test_each_folder_ships_something() -> None:
    assert all(list((ROOT / folder).glob("*.toml")) for folder in KINDS)
