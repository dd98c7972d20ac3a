"""A vehicle runs the bundles of those it trusts; everybody's only where somebody said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_bundles import brightness_model, write_small_bundle

from edge_road.errors import BundleError, ConfigError
from edge_road.keys import generate_key, public_path
from edge_road.runtime.main import main as edge_road_run
from edge_road.runtime.model import load_model
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_options import load_vehicle
from edge_road.signing import sign_bundle
from edge_road.trust import DEVELOPMENT, Trust

pytest.importorskip("cryptography")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    generate_key(tmp_path / "key")
    write_small_bundle(tmp_path / "bundle", brightness_model())
    return tmp_path / "bundle"


def vehicle_with(bundle: Path, **trust: object) -> Vehicle:
    return Vehicle.model_validate({"bundle": bundle, "trust": trust} if trust else {"bundle": bundle})


def test_a_vehicle_file_that_trusts_nobody_runs_nothing_and_both_ways_out_are_told(
    bundle: Path, tmp_path: Path
) -> None:
    file = tmp_path / "van.toml"
    file.write_text(f"bundle = '{bundle}'")
    with pytest.raises(BundleError, match="is not signed") as unsigned:
        edge_road_run(["--vehicle", str(file), "--check"])
    assert unsigned.value.exit_code == 3
    for way_out in ("edge-road sign", "trusted_keys", "allow_unsigned = true"):
        assert way_out in unsigned.value.details["to do"]
    sign_bundle(bundle, bundle.with_name("key"))
    with pytest.raises(BundleError, match="nobody is trusted here"):
        edge_road_run(["--vehicle", str(file), "--check"])


def test_an_unsigned_bundle_runs_where_it_is_allowed_and_the_log_says_so(
    bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        load_model(vehicle_with(bundle, allow_unsigned=True))
    assert "unsigned" in caplog.text


def test_without_a_vehicle_file_a_bundle_is_tried_out_unless_the_command_line_names_trust(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert edge_road_run(["--bundle", str(bundle), "--check"]) == 0
    assert "gives its own probe outputs" in capsys.readouterr().out
    assert load_vehicle(None, ["source.fps=5"]).trust == DEVELOPMENT
    assert load_vehicle(None, ["trust.allow_unsigned=false"]).trust == Trust()
    with pytest.raises(BundleError, match="is not signed"):
        edge_road_run(["--bundle", str(bundle), "--check", "--set", "trust.trusted_keys=['fleet.pub']"])


def test_a_vehicle_with_keys_runs_signed_bundles_only(bundle: Path, caplog: pytest.LogCaptureFixture) -> None:
    vehicle = vehicle_with(bundle, trusted_keys=[str(public_path(bundle.with_name("key")))])
    with pytest.raises(BundleError, match="is not signed"):
        load_model(vehicle)
    signer = sign_bundle(bundle, bundle.with_name("key"))
    with caplog.at_level("INFO"):
        load_model(vehicle)
    assert f"signed by {signer}" in caplog.text


def test_a_key_that_is_none_is_a_mistake_in_the_vehicle_file(bundle: Path) -> None:
    sign_bundle(bundle, bundle.with_name("key"))
    with pytest.raises(ConfigError, match="not a key"):
        load_model(vehicle_with(bundle, trusted_keys=["ed25519:AAAA"]))
