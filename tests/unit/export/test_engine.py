"""Building an engine on a device: which calls, which record, and when none is built."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_cuda import install_fake_gpu, remove_gpu
from fake_tensorrt import Logger, Runtime, Severity, install_fake_tensorrt
from onnx import numpy_helper
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes, conv_graph

from edge_road.backends import engine_store
from edge_road.backends.engine_store import EngineStore, store_of
from edge_road.bundle import REPORT_FILE, Bundle, load_bundle
from edge_road.cli import command
from edge_road.errors import BackendError
from edge_road.export import engine
from edge_road.export.engine import (
    build_engine,
    build_rtx_engine,
    engine_settings,
    why_no_engine,
)
from edge_road.export.target import EngineSettings, load_target
from edge_road.export.trt_network import has_dla
from edge_road.files import write_atomically

SETTINGS = EngineSettings(largest_batch=4)
MakeBundle = Callable[..., Bundle]


@pytest.fixture
def make(tmp_path: Path) -> MakeBundle:
    def make(model: bytes | None = None, name: str = "small") -> Bundle:
        write_small_bundle(tmp_path / name, model or conv_bytes(), size=SIZE, features=8)
        return load_bundle(tmp_path / name)

    return make


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    return store_of(tmp_path / "small")


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "target.toml").write_text('name = "test"\n[engine]\nlargest_batch = 4\n')
    return str(tmp_path / "target.toml")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU and TensorRT 10.3."""
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch)


@pytest.mark.usefixtures("device")
def test_an_engine_is_built_self_tested_and_recorded(make: MakeBundle, store: EngineStore) -> None:
    record = build_engine(make(), "float32", SETTINGS, store)
    assert store.records() == [record]
    assert record.key.shape == (4, *SIZE, 3)
    assert record.off_by is not None
    assert record.off_by < 1e-4
    assert record.layers == {"int8": 1, "float32": 1}
    assert record.latency_ms is not None
    assert sorted(p.suffix for p in store.folder.iterdir()) == [".json", ".layers", ".plan", ".timing"]


@pytest.mark.parametrize("version", ["10.3.0", "10.16.1.11", "11.4.0.106"])
def test_one_path_serves_every_supported_version(
    version: str, make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch, version)
    assert build_engine(make(), "float32", SETTINGS, store).key.tensorrt == version


def test_an_engine_is_built_as_the_target_of_the_export_says_unless_another_is_named(
    make: MakeBundle, target: str
) -> None:
    bundle = make()
    assert engine_settings(bundle, None) == load_target("vehicle").engine  # it has no report
    report = json.dumps({"target": load_target("jetson_agx_orin").model_dump(mode="json")}).encode()
    exported = Bundle(bundle.path, bundle.manifest, {**bundle.contents, REPORT_FILE: report}, "")
    assert engine_settings(exported, None).largest_batch == 16
    assert engine_settings(exported, target).largest_batch == 4


@pytest.mark.usefixtures("device")
def test_after_an_upgrade_only_what_is_missing_is_built_again(
    make: MakeBundle,
    store: EngineStore,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(make().path)
    build = ["build", path, "--target", target]
    assert command("engine", build) == 0
    assert command("engine", build) == 0
    assert "serves here already" in capsys.readouterr().out
    install_fake_tensorrt(monkeypatch, "10.16.1.11")
    assert command("engine", build) == 0
    assert sorted(record.key.tensorrt for record in store.records()) == ["10.16.1.11", "10.3.0"]
    assert command("engine", ["layers", path]) == 0
    assert "int8     CaskConvolution  Conv_3" in capsys.readouterr().out
    assert command("engine", ["list", path]) == 0
    listed = capsys.readouterr().out
    assert "no: TensorRT is 10.16.1.11" in listed
    assert command("engine", ["verify", path]) == 0
    assert command("engine", ["prune", path]) == 0
    assert [record.key.tensorrt for record in store.records()] == ["10.16.1.11"]


@pytest.mark.usefixtures("device")
def test_engines_of_another_model_are_listed_but_neither_opened_nor_kept(
    make: MakeBundle, store: EngineStore, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    old = build_engine(make(conv_bytes(seed=1)), "float32", SETTINGS, store)
    path = str(make().path)
    assert command("engine", ["list", path]) == 0
    assert "no: another model" in capsys.readouterr().out
    assert command("engine", ["verify", path]) == 4
    assert command("engine", ["build", path, "--target", target]) == 0
    assert "best here: float32" in capsys.readouterr().out
    assert command("engine", ["verify", path]) == 0
    assert command("engine", ["prune", path]) == 0
    assert old.key not in [record.key for record in store.records()]
    assert len(store.records()) == 1


@pytest.mark.usefixtures("device")
def test_prune_removes_nothing_where_tensorrt_cannot_be_asked(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make()
    record = build_engine(bundle, "float32", SETTINGS, store)
    monkeypatch.setitem(sys.modules, "tensorrt", None)  # type: ignore[arg-type]
    assert command("engine", ["list", str(bundle.path)]) == 0
    assert "no: TensorRT's Python module cannot be imported" in capsys.readouterr().out
    assert command("engine", ["prune", str(bundle.path)]) == 0
    assert store.records() == [record]


@pytest.mark.usefixtures("device")
def test_a_damaged_engine_does_not_pass_verify(
    make: MakeBundle, store: EngineStore, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = make()
    record = build_engine(bundle, "float32", SETTINGS, store)
    (store.folder / record.plan_file).write_bytes(b"changed")
    assert command("engine", ["verify", str(bundle.path)]) == 4
    assert "cut or changed" in capsys.readouterr().err


@pytest.mark.usefixtures("device")
def test_a_new_engine_that_fails_its_self_test_leaves_the_old_one(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make()
    good = build_engine(bundle, "float32", SETTINGS, store)
    real = Runtime.deserialize_cuda_engine

    def other_model(self: Runtime, serialized_engine: bytes) -> object:
        model = conv_bytes(seed=1)
        return real(self, serialized_engine[: serialized_engine.index(b"\n") + 1] + model)

    monkeypatch.setattr(Runtime, "deserialize_cuda_engine", other_model)
    bigger = SETTINGS.model_copy(update={"workspace_mib": 600})
    with pytest.raises(BackendError, match="failed its self-test") as caught:
        build_engine(bundle, "float32", bigger, store)
    assert "own outputs" in caught.value.details["got"]
    assert store.records() == [good]
    assert [path.name for path in store.folder.glob("*.plan")] == [good.plan_file]
    with pytest.raises(BackendError, match="failed its self-test"):  # the very plan that is in use
        build_engine(bundle, "float32", SETTINGS, store)
    assert store.read_plan(good)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("end", [".plan", ".previous.json", ".json", ".timing", ".layers", ".opening"])
def test_a_full_disk_leaves_the_engine_in_use(
    end: str, make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make()
    good = build_engine(bundle, "float32", SETTINGS, store)

    def filling(path: Path, content: bytes) -> None:
        if path.name.endswith(end):
            raise OSError(28, "No space left on device")
        write_atomically(path, content)

    for module in (engine_store, engine):
        monkeypatch.setattr(module, "write_atomically", filling)
    bigger = SETTINGS.model_copy(update={"workspace_mib": 600})
    if end in (".timing", ".layers", ".opening"):  # nothing hangs on these
        record = build_engine(bundle, "float32", bigger, store)
        assert store.records() == [record]
        return
    with pytest.raises(BackendError, match="cannot be written") as caught:
        build_engine(bundle, "float32", bigger, store)
    assert caught.value.details["got"] == "No space left on device"
    assert store.records() == [good]


@pytest.mark.usefixtures("device")
def test_a_graph_of_a_fixed_batch_needs_no_profile(make: MakeBundle, store: EngineStore) -> None:
    bundle = make(conv_bytes(2))
    manifest = bundle.manifest.model_copy(update={"input_shape": (2, *SIZE, 3)})
    fixed = Bundle(bundle.path, manifest, bundle.contents, bundle.digest)
    assert build_engine(fixed, "float32", SETTINGS, store).key.shape[0] == 2


@pytest.mark.usefixtures("device")
def test_what_tensorrt_refuses_is_named_and_leaves_nothing(make: MakeBundle, store: EngineStore) -> None:
    model = conv_graph()
    model.graph.initializer.append(numpy_helper.from_array(np.array(3, np.int8), "unit_zero"))
    with pytest.raises(BackendError, match="refuses the model") as caught:
        build_engine(make(model.SerializeToString()), "float32", SETTINGS, store)
    assert "unit_zero: Assertion failed: zero point must be zero" in caught.value.details["got"]
    assert not store.folder.exists()


@pytest.mark.usefixtures("device")
def test_a_tensorrt_that_cannot_start_says_so(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise TypeError("pybind11::init(): factory function returned nullptr")

    monkeypatch.setattr(sys.modules["tensorrt"], "Builder", broken)
    with pytest.raises(BackendError) as caught:
        build_engine(make(), "float32", SETTINGS, store)
    assert caught.value.details["got"].startswith("it cannot start here: pybind11")


def test_without_a_gpu_nothing_of_tensorrt_is_touched(
    make: MakeBundle, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    remove_gpu(monkeypatch)
    monkeypatch.setattr(engine, "import_tensorrt", lambda *_: pytest.fail("it was imported"))
    assert why_no_engine() == "this machine has no NVIDIA GPU"
    path = str(make().path)
    for words in (["build", path, "--target", target], ["verify", path]):
        assert command("engine", words) == 4
        assert "this machine has no NVIDIA GPU" in capsys.readouterr().err
    assert command("engine", ["list", path]) == 0
    assert "none in" in capsys.readouterr().out


def test_a_gpu_without_tensorrt_says_what_to_install(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake_gpu(monkeypatch)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(BackendError, match="cannot be imported") as caught:
        build_engine(make(), "float32", SETTINGS, store)
    assert "libnvinfer" in caught.value.details["to do"]


@pytest.mark.usefixtures("device")
def test_workspace_and_version_compatibility_reach_tensorrt(make: MakeBundle, store: EngineStore) -> None:
    settings = EngineSettings(workspace_mib=64, version_compatible=True, timing_cache=False)
    record = build_engine(make(), "float32", settings, store)
    plan = store.read_plan(record)
    assert b'"pools": [67108864]' in plan
    assert b"VERSION_COMPATIBLE" in plan
    assert record.version_compatible
    assert not list(store.folder.glob("*.timing"))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("stored", [b"10.3.0 timings", b"11.0 timings", b""])
def test_a_timing_cache_of_another_version_is_set_aside(
    stored: bytes, make: MakeBundle, store: EngineStore
) -> None:
    store.folder.mkdir()
    cache = store.folder / "Orin_8.7_gpu_10.3.0.timing"
    cache.write_bytes(stored)
    build_engine(make(), "float32", SETTINGS, store)
    assert cache.read_bytes() == b"10.3.0 timings"


@pytest.mark.parametrize(
    ("version", "cores", "built"),
    [("10.3.0", 2, True), ("10.3.0", 0, False), ("10.16.1.11", 2, False), ("11.4.0", 2, False)],
)
def test_dla_is_used_where_platform_and_version_have_it(
    version: str,
    cores: int,
    built: bool,
    make: MakeBundle,
    store: EngineStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install_fake_gpu(monkeypatch)
    install_fake_tensorrt(monkeypatch, version, cores)
    settings = SETTINGS.model_copy(update={"dla_core": 1})
    if built:
        record = build_engine(make(), "float32", settings, store)
        assert record.key.device == "dla1"
        assert b'"flags": ["GPU_FALLBACK"]' in store.read_plan(record)
        # With an open batch TensorRT would leave every layer to the GPU, and say nothing.
        bounds = json.dumps([[4, *SIZE, 3]] * 3).encode()
        assert bounds in store.read_plan(record)
    else:
        with pytest.raises(BackendError, match="refuses the model") as caught:
            build_engine(make(), "float32", settings, store)
        assert "no DLA core 1 here" in caught.value.details["got"]


def test_versions_with_dla() -> None:
    with_dla = [v for v in ("10.3.0", "10.7.0", "10.8.0", "11.0", "11.4.0", "11.4.1", "11.5") if has_dla(v)]
    assert with_dla == ["10.3.0", "10.7.0", "11.4.1", "11.5"]


@pytest.mark.usefixtures("device")
def test_verify_says_what_keeps_it_from_looking(
    make: MakeBundle,
    store: EngineStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle = make()
    assert command("engine", ["layers", str(bundle.path)]) == 0
    assert "none in" in capsys.readouterr().out
    assert command("engine", ["verify", str(bundle.path)]) == 4
    assert "there is no engine for this device" in capsys.readouterr().err
    build_engine(bundle, "float32", SETTINGS, store)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert command("engine", ["verify", str(bundle.path)]) == 4
    told = capsys.readouterr().err
    assert "TensorRT's Python module cannot be imported" in told
    assert "python3-libnvinfer" in told


def test_the_build_for_desktops_shows_errors_and_the_one_on_the_device_warnings_too(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorRT-RTX warns of every INT8 layer that its scales become float32."""
    asked = []

    class Spy(Logger):
        def __init__(self, min_severity: Severity) -> None:
            asked.append(min_severity)
            super().__init__(min_severity)

    install_fake_gpu(monkeypatch)
    module = install_fake_tensorrt(monkeypatch)
    monkeypatch.setattr(module, "Logger", Spy)
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", module)
    build_rtx_engine(make(), "float32", SETTINGS, store)
    build_engine(make(), "float32", SETTINGS, store)
    assert asked[:2] == [Severity.ERROR, Severity.WARNING]


def test_an_engine_for_rtx_desktops_is_built_without_a_gpu(
    make: MakeBundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real TensorRT-RTX."""
    pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed", exc_type=ImportError)
    remove_gpu(monkeypatch)
    record = build_rtx_engine(make(), "float32", SETTINGS, store)
    assert record.key.tensorrt.startswith("rtx 1.")
    assert (record.key.gpu, record.off_by) == ("RTX", None)
    assert len(store.read_plan(record)) == record.plan_bytes > 1000


@pytest.mark.hardware
def test_a_real_engine_is_built_where_a_gpu_is(make: MakeBundle, store: EngineStore) -> None:
    if lack := why_no_engine():
        pytest.skip(lack)
    assert build_engine(make(), "float32", SETTINGS, store).off_by is not None
