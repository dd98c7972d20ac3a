"""Building an engine on a device: which calls, which record, and when none is built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fake_tensorrt import install_fake_tensorrt
from onnx import numpy_helper
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.errors import BackendError
from edge_road.export import engine
from edge_road.export.calibration import activation_reach
from edge_road.export.cuda import Gpu
from edge_road.export.engine import EngineRecord, build_engine, engine_key, load_plan, why_no_engine
from edge_road.export.onnx_edit import read_model, write_model
from edge_road.export.quantize import quantizable_nodes, quantize, quantized_tensors
from edge_road.export.target import CalibrationSettings, EngineSettings
from edge_road.export.trt_network import BuildShape

ORIN = Gpu("Orin", "8.7")
SHAPE = BuildShape(*SIZE, typical=1, largest=4)
SETTINGS = EngineSettings(largest_batch=4)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU and TensorRT 10.3."""
    monkeypatch.setattr(engine, "find_gpu", lambda: ORIN)
    install_fake_tensorrt(monkeypatch)


def int8_bytes() -> bytes:
    content = conv_bytes()
    reach = activation_reach(content, quantized_tensors(content), noise_images(4), CalibrationSettings())
    return quantize(content, reach, [node.name for node in quantizable_nodes(content)])


@pytest.mark.usefixtures("device")
def test_plan_and_record_lie_side_by_side_and_are_found_again(tmp_path: Path) -> None:
    record = build_engine(int8_bytes(), "int8", SHAPE, SETTINGS, tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".plan", ".json"}
    assert record.key.shape == (4, *SIZE, 3)
    plan = load_plan(record.key, tmp_path)
    assert plan is not None
    assert plan.startswith(b"plan")


@pytest.mark.parametrize("version", ["10.3.0", "10.16.1.11", "11.4.0.106"])
def test_one_path_serves_every_supported_version(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "find_gpu", lambda: ORIN)
    install_fake_tensorrt(monkeypatch, version)
    assert build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path).key.tensorrt == version


@pytest.mark.parametrize("version", ["8.6.1", "10.2.0", "12.0.0"])
def test_other_versions_are_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_gpu", lambda: ORIN)
    install_fake_tensorrt(monkeypatch, version)
    with pytest.raises(BackendError, match="not supported"):
        build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)


@pytest.mark.usefixtures("device")
def test_a_graph_of_a_fixed_batch_needs_no_profile(tmp_path: Path) -> None:
    fixed = BuildShape(*SIZE, fixed=2)
    assert build_engine(conv_bytes(2), "float32", fixed, SETTINGS, tmp_path).key.shape[0] == 2


@pytest.mark.usefixtures("device")
def test_what_tensorrt_refuses_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    model = read_model(int8_bytes())
    zero = next(tensor for tensor in model.graph.initializer if tensor.name == "unit_zero")
    zero.CopyFrom(numpy_helper.from_array(np.int8(3).reshape(()), "unit_zero"))
    with pytest.raises(BackendError, match="refuses the model") as caught:
        build_engine(write_model(model), "int8", SHAPE, SETTINGS, tmp_path)
    assert "unit_zero: Assertion failed: zero point must be zero" in caught.value.details["got"]
    assert not list(tmp_path.iterdir())


def test_without_a_gpu_nothing_of_tensorrt_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "find_gpu", lambda: None)
    monkeypatch.setattr(engine, "_import_tensorrt", lambda: pytest.fail("it was imported"))
    assert why_no_engine() == "this machine has no NVIDIA GPU"
    with pytest.raises(BackendError, match="needs a GPU") as caught:
        build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)
    assert caught.value.exit_code == 4


def test_a_gpu_without_tensorrt_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_gpu", lambda: ORIN)
    monkeypatch.setitem(__import__("sys").modules, "tensorrt", None)
    with pytest.raises(BackendError, match="cannot be imported") as caught:
        build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)
    assert "libnvinfer" in caught.value.details["to do"]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    "change",
    [
        {"tensorrt": "10.4.0"},
        {"gpu": "Other"},
        {"compute": "8.6"},
        {"precision": "int8"},
        {"shape": (8, *SIZE, 3)},
        {"onnx_sha256": "0" * 64},
    ],
)
def test_an_engine_of_another_device_version_or_model_is_never_loaded(
    change: dict[str, object], tmp_path: Path
) -> None:
    record = build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)
    wanted = record.key.model_copy(update=change)
    assert load_plan(wanted, tmp_path) is None
    # Not even when its files carry the wanted name.
    for suffix in (".plan", ".json"):
        (tmp_path / f"{record.key.name}{suffix}").rename(tmp_path / f"{wanted.name}{suffix}")
    assert load_plan(wanted, tmp_path) is None


@pytest.mark.usefixtures("device")
def test_a_changed_plan_or_a_damaged_record_is_never_loaded(tmp_path: Path) -> None:
    record = build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)
    plan, sidecar = (tmp_path / f"{record.key.name}{suffix}" for suffix in (".plan", ".json"))
    good = plan.read_bytes()
    plan.write_bytes(good[:-1] + b"x")
    assert load_plan(record.key, tmp_path) is None
    plan.write_bytes(good)
    assert load_plan(record.key, tmp_path) == good
    sidecar.write_text("{")
    assert load_plan(record.key, tmp_path) is None
    sidecar.unlink()
    assert load_plan(record.key, tmp_path) is None


@pytest.mark.usefixtures("device")
def test_a_crash_between_plan_and_record_leaves_no_usable_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path).key
    monkeypatch.setattr(EngineRecord, "model_dump_json", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build_engine(conv_bytes(), "float32", SHAPE, SETTINGS, tmp_path)
    assert load_plan(key, tmp_path) is None


def test_the_key_names_everything_an_engine_depends_on() -> None:
    key = engine_key(conv_bytes(), "10.3.0", ORIN, "int8", SHAPE)
    assert (key.tensorrt, key.gpu, key.compute, key.precision) == ("10.3.0", "Orin", "8.7", "int8")
    assert key.name != engine_key(conv_bytes(seed=1), "10.3.0", ORIN, "int8", SHAPE).name


@pytest.mark.hardware
def test_a_real_engine_is_built_where_a_gpu_is(tmp_path: Path) -> None:
    if lack := why_no_engine():
        pytest.skip(lack)
    record = build_engine(int8_bytes(), "int8", SHAPE, SETTINGS, tmp_path)
    assert load_plan(record.key, tmp_path) is not None
