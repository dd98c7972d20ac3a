from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.config import load_settings
from edge_road.errors import ConfigError
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_options import load_vehicle
from edge_road.runtime.vehicle_sources import SyntheticSource, VideoSource


def vehicle_from(tmp_path: Path, text: str) -> Vehicle:
    path = tmp_path / "van.toml"
    path.write_text(text)
    return load_settings(Vehicle, path)


def test_the_shipped_default_says_what_a_daemon_without_a_file_does(root: Path) -> None:
    assert load_vehicle(root / "runtime/vehicles/synthetic.toml") == load_vehicle(None)


def test_the_source_is_chosen_by_its_kind(tmp_path: Path) -> None:
    vehicle = vehicle_from(tmp_path, 'source = { kind = "video", path = "a.mp4" }')
    assert vehicle.source == VideoSource(kind="video", path=Path("a.mp4"))
    assert isinstance(vehicle_from(tmp_path, "").source, SyntheticSource)


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("vehicel = 'van'", 1, "did you mean 'vehicle'?"),
        ("\n[decision]\nwarm_s = 0.1", 3, "did you mean 'warn_s'?"),
        ("[worker]\nmemory = 100", 2, "did you mean 'memory_mb'?"),
    ],
)
def test_a_typo_is_named_with_its_line_and_the_nearest_key(
    tmp_path: Path, text: str, line: int, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        vehicle_from(tmp_path, text)
    assert f"van.toml:{line}" in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_setting_of_the_default_source_can_be_changed_alone(tmp_path: Path) -> None:
    assert vehicle_from(tmp_path, "source = { fps = 5 }").source == SyntheticSource(fps=5)


def test_a_misspelt_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'kind'"):
        vehicle_from(tmp_path, 'source = { kynd = "video" }')


def test_a_typo_within_a_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'source\.lop'"):
        vehicle_from(tmp_path, '[source]\nkind = "video"\npath = "a.mp4"\nlop = true')


@pytest.mark.parametrize(
    "text",
    [
        "source = { kind = 'telescope' }",
        "vehicle = '../../etc'",
        "heartbeat_hz = 0",
        "speed = nan",
        "rate = -1",
        "[decision]\nfloor = 1.0",
        "[[regions]]\nname = 'a'\ncrop = { left = 0.6, right = 0.4 }",
        "[[regions]]\nname = 'a'\ncrop = {}\n[[regions]]\nname = 'a'\ncrop = {}",
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        vehicle_from(tmp_path, text)
