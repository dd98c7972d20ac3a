"""From a bundle to the best predictor that this machine has: a self-tested engine, else ONNX Runtime.

An engine that is missing, of another TensorRT or GPU, damaged or wrong on the probe frames never
keeps a vehicle blind: ONNX Runtime serves, and the reason is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from edge_road.backends.cuda import Gpu, require_gpu
from edge_road.backends.engine_layers import layer_types
from edge_road.backends.engine_store import (
    RTX,
    Device,
    EngineKey,
    EngineRecord,
    EngineStore,
    wanted_key,
)
from edge_road.backends.onnxrt import OnnxPredictor
from edge_road.backends.probe_check import check_probe
from edge_road.backends.trt import Flavour, TrtPredictor, import_tensorrt
from edge_road.bundle import Bundle, Precision
from edge_road.errors import BackendError, DeviceError
from edge_road.predictor import Predictor

RTX_GPU = "RTX"
RTX_COMPUTE = "8.0"
"""TensorRT-RTX compiles its kernels on the desktop, for Ampere and every newer GPU"""


@dataclass(frozen=True)
class Opened:
    predictor: Predictor
    precision: Precision
    """whose thresholds and centroids go with it"""
    degraded: str | None
    """why this is not the engine that was asked for"""


def open_best(
    bundle: Bundle, precision: Precision, store: EngineStore, *, batch: int = 1, threads: int = 1
) -> Opened:
    """The engine, or the CPU's model (always float32) with the reason."""
    try:
        return Opened(open_engine(bundle, precision, store, batch=batch), precision, None)
    except BackendError as error:
        reason = f"{error.what}: {error.details['got']}" if "got" in error.details else error.what
    predictor = OnnxPredictor.from_bundle(bundle, "float32", threads)
    check_probe(predictor, bundle.probe(), "float32")
    return Opened(predictor, "float32", reason)


def open_engine(bundle: Bundle, precision: Precision, store: EngineStore, *, batch: int = 1) -> TrtPredictor:
    """Never deserialises a plan that was built for anything else; falls back to the one before.

    A GPU that lacks memory today is no reason to do without the engine tomorrow.
    """
    record = _find(bundle, precision, store, batch)
    while True:
        try:
            return _open_record(bundle, store, record)
        except DeviceError:
            raise
        except BackendError as error:
            previous = store.take_back(record, str(error))
            if previous is None:
                raise
            record = previous


def _find(bundle: Bundle, precision: Precision, store: EngineStore, batch: int) -> EngineRecord:
    """TensorRT's engine before TensorRT-RTX's, the GPU's before an accelerator's."""
    gpu, refusals = require_gpu(), list[BackendError]()
    flavours: set[Flavour] = {"tensorrt", *(flavour_of(record.key) for record in store.records())}
    for flavour in sorted(flavours):
        try:
            version = import_tensorrt(flavour).__version__
            wanted = key_here(bundle, precision, gpu, version, flavour, batch=batch)
        except BackendError as error:
            refusals.append(error)
            continue
        for device in get_args(Device):
            if record := store.find(wanted.model_copy(update={"device": device})):
                return record
        refusals.append(_no_engine(bundle, store, wanted))
    raise refusals[0]


def _no_engine(bundle: Bundle, store: EngineStore, wanted: EngineKey) -> BackendError:
    return BackendError(
        "there is no engine for this device",
        where=store.folder,
        got=store.why_none(wanted),
        fix=f"edge-road engine build {bundle.path}",
    )


def flavour_of(key: EngineKey) -> Flavour:
    return "tensorrt_rtx" if key.is_rtx else "tensorrt"


def key_here(
    bundle: Bundle,
    precision: Precision,
    gpu: Gpu,
    version: str,
    flavour: Flavour = "tensorrt",
    *,
    batch: int = 1,
    device: Device = "gpu",
) -> EngineKey:
    """What an engine for this machine must be made for."""
    if flavour == "tensorrt_rtx":
        if tuple(map(int, gpu.compute.split("."))) < tuple(map(int, RTX_COMPUTE.split("."))):
            raise BackendError("TensorRT-RTX needs a newer GPU", got=gpu.compute, expected=RTX_COMPUTE)
        version, gpu = f"{RTX}{version}", Gpu(RTX_GPU, RTX_COMPUTE)
    return wanted_key(
        bundle,
        precision,
        tensorrt=version,
        gpu=gpu.name,
        compute=gpu.compute,
        batch=batch,
        device=device,
    )


def self_test(bundle: Bundle, store: EngineStore, record: EngineRecord) -> tuple[TrtPredictor, EngineRecord]:
    """Load the plan and compare it with the bundle's own outputs; the record tells how it went."""
    manifest, key = bundle.manifest, record.key
    flavour = flavour_of(key)
    plan = store.read_plan(record)
    with store.opening(record):
        predictor = TrtPredictor(
            plan,
            manifest.class_list,
            (manifest.preprocessing.height, manifest.preprocessing.width),
            manifest.outputs["features"][0],
            name=f"{flavour} {key.precision} on {key.gpu}"
            + ("" if key.device == "gpu" else f" {key.device}"),
            trt=import_tensorrt(flavour),
            host_code=record.version_compatible,
            dla_core=key.dla_core,
        )
        off_by = check_probe(predictor, bundle.probe(), key.precision)
    information = predictor.inspect()
    store.write_layers(record, information)
    layers = layer_types(information)
    return predictor, record.model_copy(update={"off_by": off_by, "layers": layers})


def _open_record(bundle: Bundle, store: EngineStore, record: EngineRecord) -> TrtPredictor:
    if reason := store.why_refused(record):
        raise BackendError("an engine failed here before", where=record.plan_file, got=reason)
    return self_test(bundle, store, record)[0]
