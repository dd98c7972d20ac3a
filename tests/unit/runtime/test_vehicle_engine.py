"""backend = "tensorrt": the device's own engine, and ONNX Runtime as long as there is none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fake_cuda import install_fake_gpu, remove_gpu
from fake_tensorrt import install_fake_tensorrt
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes

from edge_road.backends.engine_store import store_of
from edge_road.bundle import load_bundle
from edge_road.errors import BundleError
from edge_road.export.engine import build_engine
from edge_road.export.target import EngineSettings
from edge_road.runtime.model import load_model
from edge_road.runtime.vehicle import Vehicle
from edge_road.trust import DEVELOPMENT


@pytest.fixture
def vehicle(tmp_path: Path) -> Vehicle:
    write_small_bundle(tmp_path / "small", conv_bytes(), size=SIZE, features=8)
    return Vehicle(bundle=tmp_path / "small", backend="tensorrt", precision="float32", trust=DEVELOPMENT)


def build(vehicle: Vehicle) -> None:
    assert vehicle.bundle is not None
    build_engine(load_bundle(vehicle.bundle), "float32", EngineSettings(), store_of(vehicle.bundle))


def test_the_engine_of_this_device_serves(vehicle: Vehicle, monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    build(vehicle)
    model = load_model(vehicle)
    assert model.predictor.name.startswith("tensorrt float32 on")
    model.self_test()


def test_without_an_engine_onnx_runtime_serves_and_the_log_says_why(
    vehicle: Vehicle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert load_model(vehicle).predictor.name.startswith("onnx float32")
    assert "no engine has been built for this model" in caplog.text
    assert "edge-road engine build" in caplog.text


def test_after_an_upgrade_of_tensorrt_onnx_runtime_serves(
    vehicle: Vehicle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)
    build(vehicle)
    install_fake_tensorrt(monkeypatch, "10.7.0")
    with caplog.at_level(logging.WARNING):
        assert load_model(vehicle).predictor.name.startswith("onnx float32")
    assert "here is 10.7.0" in caplog.text


def test_without_a_gpu_a_vehicle_is_not_blind(
    vehicle: Vehicle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remove_gpu(monkeypatch)
    with caplog.at_level(logging.WARNING):
        assert load_model(vehicle).predictor.name.startswith("onnx float32")
    assert "no NVIDIA GPU" in caplog.text


def test_a_precision_that_the_bundle_lacks_is_a_mistake_and_not_a_fallback(vehicle: Vehicle) -> None:
    with pytest.raises(BundleError, match="no int8 model"):
        load_model(vehicle.model_copy(update={"precision": "int8"}))
