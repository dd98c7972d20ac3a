"""Targets: by name, by file, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge_road.errors import ConfigError
from edge_road.export.target import Target, load_target


def test_a_name_means_the_file_that_is_shipped_and_none_means_vehicle() -> None:
    assert load_target().name == "vehicle"
    assert load_target("jetson_orin_nano").engine.largest_batch == 4
    assert not load_target("cpu").int8


@pytest.mark.parametrize("name", ["cpu", "jetson_agx_orin", "jetson_orin_nano", "rtx_desktop", "vehicle"])
def test_every_shipped_target_is_valid_and_named_as_its_file(name: str, root: Path) -> None:
    assert load_target(name).name == name
    text = (root / "export" / "targets" / f"{name}.toml").read_text()
    assert text.startswith("# ")


def test_a_name_means_the_same_wherever_runs_and_bundles_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    assert load_target("cpu").name == "cpu"


def test_the_shipped_default_has_the_limits_of_the_code() -> None:
    shipped, built_in = load_target(), Target(name="vehicle")
    assert shipped.int8_limits == built_in.int8_limits
    assert shipped.float16_limits == built_in.float16_limits
    assert shipped.float_limits == built_in.float_limits
    assert shipped.calibration == built_in.calibration


def test_a_misspelt_name_or_key_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_target("jetson_orion_nano")
    assert "jetson_orin_nano.toml" in caught.value.details["to do"]
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[int8_limits]\nagreemnt = 0.9\n')
    with pytest.raises(ConfigError, match="agreemnt") as caught:
        load_target(str(path))
    assert "agreement" in caught.value.details["to do"]


def test_an_engine_is_not_tuned_for_more_than_it_takes(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[engine]\ntypical_batch = 9\n')
    with pytest.raises(ConfigError, match="typical_batch"):
        load_target(str(path))
