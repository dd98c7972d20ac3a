"""The crop helper changes one line of a vehicle file, keeps a back-up, and refuses nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.config import load_settings
from edge_road.errors import ConfigError
from edge_road.preprocess import Crop
from edge_road.runtime import crop_setup
from edge_road.runtime.crop_setup import CropChange
from edge_road.runtime.vehicle import Vehicle

VEHICLE = """# my van
vehicle = "van"  # its name

[[regions]]
name = "left_track"
crop = { left = 0.1, top = 0.5, right = 0.4, bottom = 0.9 }  # measured by hand

[[regions]]
name = "right_track"   # the other one
crop = { left = 0.6, top = 0.5, right = 0.9, bottom = 0.9 }

[decision]
clear_s = 1.5
"""
LOWER = Crop(left=0.2, top=0.6, right=0.8, bottom=1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "van.toml"
    path.write_text(VEHICLE)
    return path


def test_only_the_crop_of_that_region_changes(path: Path) -> None:
    crop_setup.apply(path, CropChange(region="right_track", crop=LOWER))
    old, new = VEHICLE.splitlines(), path.read_text().splitlines()
    assert [i for i, (a, b) in enumerate(zip(old, new)) if a != b] == [9]
    assert len(old) == len(new)
    vehicle = load_settings(Vehicle, path)
    assert [region.crop for region in vehicle.regions] == [
        Crop(left=0.1, top=0.5, right=0.4, bottom=0.9),
        LOWER,
    ]


def test_a_new_region_is_added_at_the_end(path: Path) -> None:
    crop_setup.apply(path, CropChange(crop=LOWER))
    assert path.read_text().startswith(VEHICLE.rstrip())
    assert load_settings(Vehicle, path).regions[-1].name == "road"


def test_a_file_that_is_empty_gets_its_first_region(tmp_path: Path) -> None:
    path = tmp_path / "new.toml"
    path.write_text("")
    crop_setup.apply(path, CropChange(crop=LOWER))
    assert load_settings(Vehicle, path).regions[0].crop == LOWER


def test_the_old_file_is_kept(path: Path) -> None:
    assert crop_setup.apply(path, CropChange(crop=LOWER)).read_text() == VEHICLE


def test_a_preview_shows_the_change_and_writes_nothing(path: Path) -> None:
    shown = crop_setup.preview(path, CropChange(region="left_track", crop=LOWER))
    assert "+crop = { left = 0.200, top = 0.600, right = 0.800, bottom = 1.000 }" in shown
    assert path.read_text() == VEHICLE
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("crop", "what"),
    [
        (Crop(left=0.5, right=0.52), "too small"),
        (Crop(top=0.99), "too small"),
    ],
)
def test_a_crop_that_shows_no_road_is_refused(path: Path, crop: Crop, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        crop_setup.apply(path, CropChange(crop=crop))
    assert path.read_text() == VEHICLE


def test_a_crop_spread_over_lines_is_left_to_its_author(path: Path) -> None:
    spread = """[[regions]]
name = "road"
[regions.crop]
left = 0.1
"""
    path.write_text(spread)
    with pytest.raises(ConfigError, match="one line"):
        crop_setup.apply(path, CropChange(region="road", crop=LOWER))
    assert path.read_text() == spread


def test_a_file_the_daemon_would_refuse_is_not_written(path: Path) -> None:
    path.write_text(VEHICLE + "clear_z = 1\n")
    with pytest.raises(ConfigError, match="clear_z"):
        crop_setup.apply(path, CropChange(crop=LOWER))
