"""A vehicle runs the bundles of those it trusts, and says so when it trusts everybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_bundles import brightness_model, write_small_bundle

from edge_road.errors import BundleError, ConfigError
from edge_road.keys import generate_key, public_path
from edge_road.runtime.model import load_model
from edge_road.runtime.vehicle import Vehicle
from edge_road.signing import sign_bundle

pytest.importorskip("cryptography")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    generate_key(tmp_path / "key")
    write_small_bundle(tmp_path / "bundle", brightness_model())
    return tmp_path / "bundle"


def vehicle_with(bundle: Path, **trust: object) -> Vehicle:
    return Vehicle.model_validate({"bundle": bundle, "trust": trust} if trust else {"bundle": bundle})


def test_by_default_an_unsigned_bundle_runs_and_the_log_says_so(
    bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        load_model(vehicle_with(bundle))
    assert "unsigned" in caplog.text


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
