"""Building engines: on the device from a verified bundle, self-tested before anything uses them.

The new plan is written beside the old one, compared with the bundle's own outputs, and only then
put in use; whatever goes wrong before that leaves the engine that was there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
from functools import partial
from types import ModuleType
from typing import Any

from edge_road.backends.cuda import Gpu, find_gpu, require_gpu
from edge_road.backends.engine_life import RTX_COMPUTE, RTX_GPU, key_here, self_test
from edge_road.backends.engine_store import Device, EngineKey, EngineRecord, EngineStore
from edge_road.backends.onnx_check import check_onnx
from edge_road.backends.timing import median_ms
from edge_road.backends.trt import Flavour, import_tensorrt
from edge_road.bundle import REPORT_FILE, Bundle, Precision
from edge_road.errors import BackendError
from edge_road.export.target import EngineSettings, load_target
from edge_road.export.trt_network import BuildOptions, BuildRefused, BuildShape, Built, build
from edge_road.files import sha256, write_atomically

LARGEST_CACHE_BYTES = 64 * 2**20


def why_no_engine() -> str | None:
    """In plain words, what this machine lacks; none when an engine can be built here."""
    if find_gpu() is None:
        return "this machine has no NVIDIA GPU"
    if importlib.util.find_spec("tensorrt") is None:
        return "TensorRT's Python module is not installed"
    return None


def engine_settings(bundle: Bundle, wish: str | None) -> EngineSettings:
    """Of the target that is asked for; else of the one that the bundle was exported for."""
    if wish is None:
        with contextlib.suppress(KeyError, TypeError, ValueError, RecursionError):  # no report that we know
            return EngineSettings.model_validate(json.loads(bundle.contents[REPORT_FILE])["target"]["engine"])
    return load_target(wish).engine


def build_engine(
    bundle: Bundle, precision: Precision, settings: EngineSettings, store: EngineStore
) -> EngineRecord:
    """Build for this machine's GPU, self-test, put in use."""
    gpu = require_gpu()
    trt = import_tensorrt()
    key = device_key(bundle, precision, settings, gpu, trt.__version__)
    logger = trt.Logger(trt.Logger.Severity.WARNING)
    built = _build(trt, logger, bundle, precision, settings, _read_cache(store, key, settings))
    record = _write(store, key, built, settings)
    try:
        predictor, record = self_test(bundle, store, record)
        record = record.model_copy(
            update={"latency_ms": median_ms(partial(predictor.predict, bundle.probe().images_NHWC[:1]))}
        )
        predictor.close()
    except BackendError as error:
        store.discard(record)
        raise BackendError(
            "the new engine failed its self-test and is not used",
            where=record.plan_file,
            got=f"{error.what}, {error.details.get('got', '')}",
            fix="another precision, or the ONNX backend, which serves meanwhile",
        ) from None
    _put_in_use(store, record)
    if built.timing_cache:
        with contextlib.suppress(OSError):  # only time is lost
            write_atomically(store.folder / _cache_name(key), built.timing_cache)
    return record


def build_rtx_engine(
    bundle: Bundle, precision: Precision, settings: EngineSettings, store: EngineStore
) -> EngineRecord:
    """For RTX desktops, on any machine; the desktop self-tests it when it opens it."""
    trt = import_tensorrt("tensorrt_rtx")
    desktop = Gpu(RTX_GPU, RTX_COMPUTE)
    key = device_key(bundle, precision, settings, desktop, trt.__version__, "tensorrt_rtx")
    plain = settings.model_copy(update={"dla_core": None, "version_compatible": False})
    # It warns of every INT8 layer that its scales become float32.
    logger = trt.Logger(trt.Logger.Severity.ERROR)
    record = _write(store, key, _build(trt, logger, bundle, precision, plain, None), plain)
    _put_in_use(store, record)
    return record


def device_key(
    bundle: Bundle,
    precision: Precision,
    settings: EngineSettings,
    gpu: Gpu,
    version: str,
    flavour: Flavour = "tensorrt",
) -> EngineKey:
    on_gpu = settings.dla_core is None or flavour == "tensorrt_rtx"
    device: Device = "gpu" if on_gpu else "dla0" if settings.dla_core == 0 else "dla1"
    batch = settings.largest_batch
    return key_here(bundle, precision, gpu, version, flavour, batch=batch, device=device)


def import_tensorrt_rtx() -> ModuleType:
    """For those who want the module itself, with its own ImportError."""
    import tensorrt_rtx

    module: ModuleType = tensorrt_rtx
    return module


def _build(
    trt: Any,
    logger: Any,
    bundle: Bundle,
    precision: Precision,
    settings: EngineSettings,
    cache: bytes | None,
) -> Built:
    onnx_bytes = bundle.model_bytes(precision)
    check_onnx(onnx_bytes, where=f"{precision} model")
    batch, height, width, _ = bundle.manifest.input_shape
    shape = BuildShape(height, width, batch, settings.typical_batch, settings.largest_batch)
    options = BuildOptions(settings.workspace_mib, settings.version_compatible, settings.dla_core, cache)
    try:
        return build(trt, logger, onnx_bytes, shape, options)
    except BuildRefused as refusal:
        raise BackendError("TensorRT refuses the model", where=precision, got=refusal) from None


def _write(store: EngineStore, key: EngineKey, built: Built, settings: EngineSettings) -> EngineRecord:
    record = EngineRecord(
        key=key,
        plan_sha256=sha256(built.plan),
        plan_bytes=len(built.plan),
        version_compatible=settings.version_compatible,
    )
    try:
        store.write_plan(record, built.plan)
    except OSError as error:
        raise _not_written(store, error) from None
    return record


def _put_in_use(store: EngineStore, record: EngineRecord) -> None:
    try:
        store.put_in_use(record)
    except OSError as error:
        raise _not_written(store, error) from None


def _not_written(store: EngineStore, error: OSError) -> BackendError:
    return BackendError(
        "the engine cannot be written; the one in use stays", where=store.folder, got=error.strerror
    )


def _read_cache(store: EngineStore, key: EngineKey, settings: EngineSettings) -> bytes | None:
    if not settings.timing_cache:
        return None
    try:
        with open(store.folder / _cache_name(key), "rb") as file:
            return file.read(LARGEST_CACHE_BYTES)
    except OSError:
        return b""


def _cache_name(key: EngineKey) -> str:
    """One for each TensorRT and GPU: timings of another say nothing."""
    device = re.sub(r"[^A-Za-z0-9.]+", "_", f"{key.gpu} {key.compute} {key.device} {key.tensorrt}")
    return f"{device}.timing"
