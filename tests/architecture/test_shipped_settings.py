"""Every recipe, target and vehicle that we ship loads, and survives being written and read again."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from edge_road.config import StrictModel, load_settings, settings_digest, write_settings
from edge_road.runtime.outputs import STANDARD_OUTPUT
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import JsonLinesOutput

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


def test_a_shipped_vehicle_with_a_camera_runs_signed_bundles_only_and_others_say_that_they_do_not() -> None:
    for path in (ROOT / "runtime/vehicles").glob("*.toml"):
        trust = load_settings(Vehicle, path).trust
        has_camera = path.stem in ("usb_camera", "jetson_csi")
        assert bool(trust.trusted_keys) == has_camera, path.name
        assert trust.allow_unsigned != has_camera, path.name


def test_a_service_with_a_shipped_camera_does_not_fill_its_journal() -> None:
    """What systemd reads from the standard output it keeps: a message for every frame, for months."""
    for name in ("usb_camera", "jetson_csi"):
        vehicle = load_settings(Vehicle, ROOT / f"runtime/vehicles/{name}.toml")
        lines = [output for output in vehicle.outputs if isinstance(output, JsonLinesOutput)]
        assert lines
        assert all(output.path != STANDARD_OUTPUT and output.rotate_mb > 0 for output in lines), name


def test_every_path_of_the_service_is_in_its_own_folder() -> None:
    """It may write to no other, so a page that names another one would mislead."""
    written = re.findall(r"/var/lib/[\w-]+", "".join(page.read_text() for page in ROOT.glob("docs/**/*.md")))
    service = (ROOT / "runtime/systemd/edge-road.service").read_text()
    named = re.search(r"^StateDirectory=(.+)$", service, re.MULTILINE)
    assert named is not None
    assert set(written) <= {f"/var/lib/{named[1]}", "/var/lib/nvpmodel"}
