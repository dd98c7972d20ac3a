"""Engines on disk and in use: found, refused, swapped, taken back, never for another machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from fake_cuda import FakeDriver, install_fake_gpu, remove_gpu
from fake_tensorrt import ICudaEngine, Runtime, install_fake_tensorrt, plan_of
from small_bundles import write_small_bundle
from tiny_onnx import SIZE, conv_bytes, noise_images

from edge_road.backends import engine_store
from edge_road.backends.engine_life import open_best, open_engine
from edge_road.backends.engine_store import EngineKey, EngineRecord, EngineStore, store_of, wanted_key
from edge_road.bundle import Bundle, load_bundle
from edge_road.errors import BackendError
from edge_road.files import sha256

THIS_BOOT = engine_store.BOOT_ID.read_text().strip()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    path = tmp_path_factory.mktemp("bundles") / "small"
    write_small_bundle(path, conv_bytes(), size=SIZE, features=8)
    return load_bundle(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineStore:
    """On an Orin with TensorRT 10.3."""
    install_fake_tensorrt(monkeypatch)
    install_fake_gpu(monkeypatch)
    return EngineStore(tmp_path / "small.engines")


def key_of(bundle: Bundle, batch: int = 4, tensorrt: str = "10.3.0") -> EngineKey:
    return wanted_key(bundle, "float32", tensorrt=tensorrt, gpu="Orin", compute="8.7", batch=batch)


def put(store: EngineStore, key: EngineKey, plan: bytes) -> EngineRecord:
    record = EngineRecord(key=key, plan_sha256=sha256(plan), plan_bytes=len(plan))
    store.write_plan(record, plan)
    store.put_in_use(record)
    return record


def wrong_plan() -> bytes:
    """Loads and runs, but is another model."""
    return plan_of(conv_bytes(seed=1))


def test_an_engine_for_this_machine_serves(bundle: Bundle, store: EngineStore) -> None:
    put(store, key_of(bundle), plan_of(conv_bytes()))
    opened = open_best(bundle, "float32", store)
    assert opened.degraded is None
    assert opened.predictor.name == "tensorrt float32 on Orin"
    assert len(opened.predictor.predict(noise_images(6))) == 6


def test_an_engine_of_an_accelerator_serves_on_its_own_core_unless_there_is_one_of_the_gpu(
    bundle: Bundle, store: EngineStore
) -> None:
    on_dla = plan_of(conv_bytes()).replace(b'"dla": -1', b'"dla": 1')
    put(store, key_of(bundle).model_copy(update={"device": "dla1"}), on_dla)
    assert open_best(bundle, "float32", store).predictor.name == "tensorrt float32 on Orin dla1"
    put(store, key_of(bundle), plan_of(conv_bytes()))
    assert open_best(bundle, "float32", store).predictor.name == "tensorrt float32 on Orin"


def test_on_a_desktop_an_engine_of_tensorrt_rtx_serves(
    bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", sys.modules["tensorrt"])
    monkeypatch.setitem(sys.modules, "tensorrt", None)  # type: ignore[arg-type]
    rtx = key_of(bundle).model_copy(update={"tensorrt": "rtx 10.3.0", "gpu": "RTX", "compute": "8.0"})
    put(store, rtx, plan_of(conv_bytes()))
    assert open_best(bundle, "float32", store).predictor.name == "tensorrt_rtx float32 on RTX"


def test_a_tensorrt_that_cannot_start_does_not_blind_the_vehicle(
    bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise TypeError("pybind11::init(): factory function returned nullptr")

    put(store, key_of(bundle), plan_of(conv_bytes()))
    monkeypatch.setattr(sys.modules["tensorrt"], "Runtime", broken)
    opened = open_best(bundle, "float32", store)
    assert opened.predictor.name.startswith("onnx")
    assert opened.degraded is not None
    assert opened.degraded.startswith("TensorRT cannot start here: pybind11")


def no_memory(*_: object) -> int:
    return 2


def nothing(*_: object) -> None:
    return None


@pytest.mark.parametrize(
    ("owner", "call", "fails"),
    [
        (FakeDriver, "cuDevicePrimaryCtxRetain", no_memory),
        (FakeDriver, "cuMemAlloc_v2", no_memory),
        (Runtime, "deserialize_cuda_engine", nothing),
        (ICudaEngine, "create_execution_context", nothing),
    ],
)
def test_a_gpu_without_memory_today_costs_no_engine_tomorrow(
    owner: type, call: str, fails: object, bundle: Bundle, store: EngineStore
) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    with pytest.MonkeyPatch.context() as today:
        today.setattr(owner, call, fails)
        opened = open_best(bundle, "float32", store)
        assert opened.predictor.name.startswith("onnx")
    assert opened.degraded
    assert store.find(key_of(bundle)) == record
    assert open_best(bundle, "float32", store).degraded is None


def test_the_plan_is_as_tensorrt_wrote_it_with_its_record_beside_it(
    bundle: Bundle, store: EngineStore
) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    assert (store.folder / record.plan_file).read_bytes() == plan_of(conv_bytes())
    assert json.loads((store.folder / f"{record.key.name}.json").read_text())["key"]["gpu"] == "Orin"


def test_without_an_engine_onnx_runtime_serves_and_says_why(bundle: Bundle, store: EngineStore) -> None:
    opened = open_best(bundle, "float32", store)
    assert (opened.predictor.name, opened.precision) == ("onnx float32 on CPU", "float32")
    assert opened.degraded == ("there is no engine for this device: no engine has been built for this model")


def test_without_a_gpu_onnx_runtime_serves(
    bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_gpu(monkeypatch)
    assert open_best(bundle, "float32", store).degraded == (
        "an engine needs a GPU: this machine has no NVIDIA GPU"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tensorrt": "10.4.0"}, "for tensorrt 10.4.0, here is 10.3.0"),
        ({"gpu": "Xavier"}, "for gpu Xavier, here is Orin"),
        ({"compute": "8.6"}, "for compute 8.6, here is 8.7"),
        ({"precision": "int8"}, "for precision int8"),
        ({"onnx_sha256": "0" * 64}, "no engine has been built"),
    ],
)
def test_a_plan_for_anything_else_is_never_deserialised(
    change: dict[str, str], reason: str, bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runtime, "deserialize_cuda_engine", lambda *_: pytest.fail("it may crash"))
    record = put(store, key_of(bundle).model_copy(update=change), plan_of(conv_bytes()))
    with pytest.raises(BackendError, match="no engine for this device") as caught:
        open_engine(bundle, "float32", store)
    assert reason in caught.value.details["got"]
    # Not even when its files carry the wanted name.
    wanted = key_of(bundle)
    (store.folder / f"{record.key.name}.json").rename(store.folder / f"{wanted.name}.json")
    with pytest.raises(BackendError, match="no engine for this device"):
        open_engine(bundle, "float32", store)


def test_why_none_serves_is_told_of_the_nearest_engine(bundle: Bundle, store: EngineStore) -> None:
    put(store, key_of(bundle, 8, tensorrt="10.4.0"), plan_of(conv_bytes(), largest=8))
    put(store, key_of(bundle, 2), plan_of(conv_bytes(), largest=2))
    assert store.why_none(key_of(bundle, 8)) == "the engine is for batch 2, here is 8"
    assert store.why_none(key_of(bundle, 4)) == "the engine is for batch 2, here is 4"
    assert store.why_none(key_of(bundle, 1, tensorrt="10.5.0")) == (
        "the engine is for tensorrt 10.3.0, 10.4.0, here is 10.5.0"
    )


def test_a_smaller_batch_is_served_by_a_larger_engine_but_not_the_other_way(
    bundle: Bundle, store: EngineStore
) -> None:
    large, small = (
        put(store, key_of(bundle, batch), plan_of(conv_bytes(), largest=batch)) for batch in (4, 2)
    )
    assert store.find(key_of(bundle, 1)) == small
    assert store.find(key_of(bundle, 3)) == large
    assert store.find(key_of(bundle, 5)) is None


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_plan_is_never_deserialised(
    damage: str, bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    path = store.folder / record.plan_file
    good = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(good[:-1] if damage == "cut" else good[:-1] + bytes([good[-1] ^ 1]))
    monkeypatch.setattr(Runtime, "deserialize_cuda_engine", lambda *_: pytest.fail("it may crash"))
    opened = open_best(bundle, "float32", store)
    assert opened.predictor.name.startswith("onnx")
    assert store.find(key_of(bundle)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 2}'])
def test_a_damaged_record_is_no_engine(text: str, bundle: Bundle, store: EngineStore) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    (store.folder / f"{record.key.name}.json").write_text(text)
    assert store.records() == []


def test_an_engine_that_is_wrong_on_the_probe_gives_way_to_the_one_before(
    bundle: Bundle, store: EngineStore
) -> None:
    good = put(store, key_of(bundle), plan_of(conv_bytes()))
    put(store, key_of(bundle), wrong_plan())
    opened = open_best(bundle, "float32", store)
    assert opened.degraded is None
    assert store.find(key_of(bundle)) == good


def test_with_nothing_before_it_onnx_runtime_serves_and_the_reason_stays(
    bundle: Bundle, store: EngineStore
) -> None:
    record = put(store, key_of(bundle), wrong_plan())
    opened = open_best(bundle, "float32", store)
    assert opened.degraded is not None
    assert opened.degraded.startswith("the model does not give its own outputs")
    assert "does not give its own outputs" in (store.why_refused(record) or "")
    # Built again, the same plan gets a new chance.
    store.write_plan(record, wrong_plan())
    assert store.why_refused(record) is None


@pytest.mark.parametrize("mark", ["", "999999999", str(os.getpid())], ids=["none", "gone", "ours"])
@pytest.mark.parametrize("boot", ["", f" {THIS_BOOT}"], ids=["boot not told", "this boot"])
def test_a_plan_that_ended_the_process_is_not_opened_twice(
    mark: str, boot: str, bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the new process may well have the number of the old one."""
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    (store.folder / f"{record.plan_file}.opening").write_text(mark + boot)  # what a crash leaves
    monkeypatch.setattr(Runtime, "deserialize_cuda_engine", lambda *_: pytest.fail("it crashed here before"))
    opened = open_best(bundle, "float32", store)
    assert opened.degraded == "an engine failed here before: the process ended while it was opened"


def test_a_plan_that_another_process_is_opening_right_now_is_opened_too(
    bundle: Bundle, store: EngineStore
) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    (store.folder / f"{record.plan_file}.opening").write_text(f"{os.getppid()} {THIS_BOOT}")
    assert open_best(bundle, "float32", store).degraded is None


def test_a_power_cut_while_a_plan_was_opened_is_not_held_against_it(
    bundle: Bundle, store: EngineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    mark = store.folder / f"{record.plan_file}.opening"
    with store.opening(record):
        left = mark.read_bytes()
    mark.write_bytes(left)
    assert store.why_refused(record) == "the process ended while it was opened"
    (tmp_path / "boot_id").write_text("the next boot\n")
    monkeypatch.setattr(engine_store, "BOOT_ID", tmp_path / "boot_id")
    assert open_best(bundle, "float32", store).degraded is None
    assert not mark.exists()


def test_a_fallback_that_was_put_there_for_another_machine_is_never_opened(
    bundle: Bundle, store: EngineStore
) -> None:
    record = put(store, key_of(bundle), wrong_plan())
    other = put(store, key_of(bundle, tensorrt="10.4.0"), plan_of(conv_bytes()))
    (store.folder / f"{other.key.name}.json").rename(store.folder / f"{record.key.name}.previous.json")
    opened = open_best(bundle, "float32", store)
    assert opened.predictor.name.startswith("onnx")


def test_a_disk_that_takes_nothing_does_not_blind_the_vehicle(
    bundle: Bundle, store: EngineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    good = put(store, key_of(bundle), plan_of(conv_bytes()))
    monkeypatch.setattr(engine_store, "write_atomically", full)
    assert open_best(bundle, "float32", store).degraded is None
    (store.folder / good.plan_file).write_bytes(b"changed")
    assert open_best(bundle, "float32", store).predictor.name.startswith("onnx")


def test_an_engine_that_opened_well_leaves_no_mark(bundle: Bundle, store: EngineStore) -> None:
    put(store, key_of(bundle), plan_of(conv_bytes()))
    open_engine(bundle, "float32", store)
    assert {path.suffix for path in store.folder.iterdir()} == {".plan", ".json", ".layers"}


def test_prune_keeps_what_is_in_use_and_what_it_falls_back_to(bundle: Bundle, store: EngineStore) -> None:
    before = put(store, key_of(bundle), plan_of(conv_bytes()))
    now = put(store, key_of(bundle), wrong_plan())
    old = put(store, key_of(bundle, tensorrt="10.4.0"), plan_of(conv_bytes()))
    (store.folder / "left-over.plan").write_bytes(b"x")
    removed = {path.name for path in store.prune([now])}
    assert removed == {old.plan_file, f"{old.key.name}.json", "left-over.plan"}
    assert store.read_plan(before) == plan_of(conv_bytes())


def test_prune_keeps_the_mark_against_a_plan_that_crashed(bundle: Bundle, store: EngineStore) -> None:
    record = put(store, key_of(bundle), plan_of(conv_bytes()))
    (store.folder / f"{record.plan_file}.opening").write_text("999999999")
    store.prune([record])
    assert store.why_refused(record) == "the process ended while it was opened"


def test_engines_lie_beside_the_bundle_whose_bytes_never_change() -> None:
    assert store_of(Path("/bundles/demo")).folder == Path("/bundles/demo.engines")
