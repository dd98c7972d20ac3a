"""TensorRT engines: built on the device from verified ONNX bytes, with a record beside the plan.

A plan is executable code for one GPU and one TensorRT version. The record says which, so that no
reader ever hands unknown bytes to the vendor's runtime.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from edge_road.backends.onnx_check import check_onnx
from edge_road.bundle import Precision
from edge_road.config import StrictModel, settings_digest
from edge_road.errors import BackendError
from edge_road.export.cuda import Gpu, find_gpu
from edge_road.export.target import EngineSettings
from edge_road.export.trt_network import BuildRefused, BuildShape, build_plan
from edge_road.files import sha256, write_atomically

OLDEST = (10, 3)
NEWEST_MAJOR = 11


class EngineKey(StrictModel):
    """An engine serves only where all of this is equal."""

    onnx_sha256: str
    tensorrt: str
    gpu: str
    compute: str
    precision: Precision
    shape: tuple[int, int, int, int]
    """largest batch, height, width, 3"""

    @property
    def name(self) -> str:
        return f"{self.precision}-{settings_digest(self)[:16]}"


class EngineRecord(StrictModel):
    key: EngineKey
    plan_sha256: str
    plan_bytes: int


def why_no_engine() -> str | None:
    """In plain words, what this machine lacks; none when an engine can be built here."""
    if find_gpu() is None:
        return "this machine has no NVIDIA GPU"
    if importlib.util.find_spec("tensorrt") is None:
        return "TensorRT's Python module is not installed"
    return None


def build_engine(
    onnx_bytes: bytes, precision: Precision, shape: BuildShape, settings: EngineSettings, folder: Path
) -> EngineRecord:
    """Build, then write `<name>.plan` and, when it is safely there, `<name>.json`."""
    gpu = find_gpu()
    if gpu is None:
        raise BackendError("an engine needs a GPU", got=why_no_engine(), fix="run this on the device")
    trt = _import_tensorrt()
    check_onnx(onnx_bytes, where=f"{precision} model")
    try:
        logger = trt.Logger(trt.Logger.Severity.WARNING)
        plan = build_plan(trt, logger, onnx_bytes, shape, settings.workspace_mib)
    except BuildRefused as refusal:
        raise BackendError("TensorRT refuses the model", where=precision, got=refusal) from None
    record = EngineRecord(
        key=engine_key(onnx_bytes, trt.__version__, gpu, precision, shape),
        plan_sha256=sha256(plan),
        plan_bytes=len(plan),
    )
    try:
        _write_engine(record, plan, folder)
    except OSError as error:
        raise BackendError("the engine cannot be written", where=folder, got=error.strerror) from None
    return record


def _write_engine(record: EngineRecord, plan: bytes, folder: Path) -> None:
    """The old record goes first and the new one comes last: a plan without its record is never used."""
    path = folder / f"{record.key.name}.plan"
    path.with_suffix(".json").unlink(missing_ok=True)
    write_atomically(path, plan)
    write_atomically(path.with_suffix(".json"), record.model_dump_json(indent=2).encode() + b"\n")


def engine_key(
    onnx_bytes: bytes, tensorrt: str, gpu: Gpu, precision: Precision, shape: BuildShape
) -> EngineKey:
    return EngineKey(
        onnx_sha256=sha256(onnx_bytes),
        tensorrt=tensorrt,
        gpu=gpu.name,
        compute=gpu.compute,
        precision=precision,
        shape=shape.of_batch(shape.fixed or shape.largest),
    )


def load_plan(key: EngineKey, folder: Path) -> bytes | None:
    """The verified plan that was built for exactly this key, or none."""
    try:
        record = EngineRecord.model_validate_json((folder / f"{key.name}.json").read_bytes())
        plan = (folder / f"{key.name}.plan").read_bytes()
    except (OSError, ValidationError):
        return None
    return plan if record.key == key and sha256(plan) == record.plan_sha256 else None


def import_tensorrt_rtx() -> ModuleType:
    """TensorRT for RTX GPUs has the same Python interface, and builds without a GPU."""
    import tensorrt_rtx

    module: ModuleType = tensorrt_rtx
    return module


def _import_tensorrt() -> ModuleType:
    try:
        import tensorrt
    except ImportError as error:
        raise BackendError(
            "TensorRT's Python module cannot be imported",
            got=error,
            fix="on a Jetson: sudo apt install python3-libnvinfer, and a venv with --system-site-packages",
        ) from None
    version = tuple(int(part) for part in re.findall(r"\d+", tensorrt.__version__)[:2])
    if version < OLDEST or version[0] > NEWEST_MAJOR:
        raise BackendError(
            "this version of TensorRT is not supported",
            got=tensorrt.__version__,
            expected=f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST_MAJOR}.x",
        )
    module: ModuleType = tensorrt
    return module
