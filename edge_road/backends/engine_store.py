"""Engines on disk: plans under their own digest, and one small record per key that says which is in use.

A plan is executable code for one GPU and one TensorRT version. The record says which, so that no
reader ever hands unknown bytes to the vendor's library. Replacing the record is one rename: an
engine is swapped, or taken back, in one step. The plan itself is as TensorRT wrote it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from edge_road.bundle import Bundle, Precision
from edge_road.config import StrictModel, settings_digest
from edge_road.errors import BackendError, DeviceError
from edge_road.files import sha256, write_atomically

LARGEST_RECORD_BYTES = 2**20
LARGEST_PLAN_BYTES = 2**30
RTX = "rtx "
LAYERS = ".layers"
MARKS = (".refused", ".opening")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
Device = Literal["gpu", "dla0", "dla1"]


class EngineKey(StrictModel):
    """An engine serves only where all of this is equal."""

    onnx_sha256: str
    tensorrt: str
    gpu: str
    compute: str
    precision: Precision
    shape: tuple[int, int, int, int]
    """largest batch, height, width, 3"""
    device: Device = "gpu"

    @property
    def name(self) -> str:
        return f"{self.precision}-{settings_digest(self)[:16]}"

    @property
    def is_rtx(self) -> bool:
        """For TensorRT-RTX, which numbers its versions by itself."""
        return self.tensorrt.startswith(RTX)

    @property
    def dla_core(self) -> int | None:
        return None if self.device == "gpu" else int(self.device.removeprefix("dla"))

    def serves(self, wanted: EngineKey) -> bool:
        """Equal, or for larger batches than are wanted."""
        enough = self.shape[0] >= wanted.shape[0]
        return enough and self.model_copy(update={"shape": (wanted.shape[0], *self.shape[1:])}) == wanted


class EngineRecord(StrictModel):
    schema_version: Literal[1] = 1
    key: EngineKey
    plan_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    plan_bytes: int = Field(ge=1, le=LARGEST_PLAN_BYTES)
    version_compatible: bool = False
    """the plan brings its own lean runtime, which TensorRT must be allowed to use"""
    off_by: float | None = None
    """largest deviation from the bundle's logits in the self-test; none: built where it cannot run"""
    latency_ms: float | None = None
    """median of single images where it was built"""
    layers: dict[str, int] = Field(default_factory=dict)
    """data type -> layers that compute in it"""

    @property
    def plan_file(self) -> str:
        return f"{self.key.name}-{self.plan_sha256[:12]}.plan"


@dataclass(frozen=True)
class EngineStore:
    folder: Path

    def find(self, wanted: EngineKey) -> EngineRecord | None:
        """The record of an engine that serves; the smallest batch that suffices."""
        serving = [record for record in self.records() if record.key.serves(wanted)]
        return min(serving, key=lambda record: record.key.shape, default=None)

    def why_none(self, wanted: EngineKey) -> str:
        """In plain words, why there is nothing for `wanted`: what the nearest ones lack."""
        near = [r.key for r in self.records() if r.key.onnx_sha256 == wanted.onnx_sha256]
        if not near:
            return "no engine has been built for this model"
        for name in ("tensorrt", "gpu", "compute", "precision", "device"):
            others = sorted({str(getattr(key, name)) for key in near})
            near = [key for key in near if getattr(key, name) == getattr(wanted, name)]
            if not near:
                return f"the engine is for {name} {', '.join(others)}, here is {getattr(wanted, name)}"
        return f"the engine is for batch {max(key.shape[0] for key in near)}, here is {wanted.shape[0]}"

    def read_plan(self, record: EngineRecord) -> bytes:
        """The plan that the record vouches for."""
        path = self.folder / record.plan_file
        try:
            with open(path, "rb") as file:
                plan = file.read(record.plan_bytes + 1)
        except OSError as error:
            kind = BackendError if isinstance(error, FileNotFoundError) else DeviceError
            raise kind("an engine cannot be read", where=path, got=error.strerror) from None
        if len(plan) != record.plan_bytes or sha256(plan) != record.plan_sha256:
            raise BackendError(
                "an engine is cut or changed",
                where=path,
                got=f"{len(plan)} bytes, sha256 {sha256(plan)[:16]}...",
                expected=f"{record.plan_bytes} bytes, sha256 {record.plan_sha256[:16]}...",
                fix="edge-road engine build BUNDLE makes it anew",
            )
        return plan

    def write_plan(self, record: EngineRecord, plan: bytes) -> None:
        """Beside whatever is in use: nothing reads it before `put_in_use`. Old marks against it go."""
        for mark in MARKS:
            (self.folder / f"{record.plan_file}{mark}").unlink(missing_ok=True)
        write_atomically(self.folder / record.plan_file, plan)

    def discard(self, record: EngineRecord) -> None:
        """A plan that failed before it was put in use; a build may well give the bytes that are in use."""
        in_use = [self._read(path(record.key)) for path in (self._record_path, self._previous_path)]
        if record.plan_sha256 not in {other.plan_sha256 for other in in_use if other}:
            for path in self._files_of(record):
                path.unlink(missing_ok=True)

    def write_layers(self, record: EngineRecord, information: str) -> None:
        """The inspector's report beside the plan; once, and nothing hangs on it."""
        path = self._layers_path(record)
        if not path.exists():
            with contextlib.suppress(OSError):
                write_atomically(path, information.encode())

    def read_layers(self, record: EngineRecord) -> str:
        try:
            return self._layers_path(record).read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def put_in_use(self, record: EngineRecord) -> None:
        current = self._read(self._record_path(record.key))
        if current is not None and current.plan_sha256 != record.plan_sha256:
            write_atomically(self._previous_path(record.key), _record_bytes(current))
        write_atomically(self._record_path(record.key), _record_bytes(record))

    def take_back(self, record: EngineRecord, reason: str) -> EngineRecord | None:
        """The engine failed: the one before it is in use again, or none is."""
        previous = self._read(self._previous_path(record.key))
        if previous and (previous.key != record.key or previous.plan_sha256 == record.plan_sha256):
            previous = None
        with contextlib.suppress(OSError):  # a disk that is full or read-only must not blind a vehicle
            if previous is not None:
                write_atomically(self._record_path(record.key), _record_bytes(previous))
            else:
                self._record_path(record.key).unlink(missing_ok=True)
            self._previous_path(record.key).unlink(missing_ok=True)
            write_atomically(self.folder / f"{record.plan_file}.refused", reason.encode() + b"\n")
        return previous

    def why_refused(self, record: EngineRecord) -> str | None:
        """The reason for which this very plan was taken back, also by a crash while it was opened."""
        refused, opening = (self.folder / f"{record.plan_file}{mark}" for mark in MARKS)
        with contextlib.suppress(OSError):
            return refused.read_text(errors="replace")[:1000].strip()
        with contextlib.suppress(OSError):
            return "the process ended while it was opened" if _crashed(opening.read_bytes()) else None
        return None

    @contextlib.contextmanager
    def opening(self, record: EngineRecord) -> Iterator[None]:
        """A crash inside leaves a mark, so that a plan cannot end the same daemon twice."""
        mark = self.folder / f"{record.plan_file}.opening"
        with contextlib.suppress(OSError):
            write_atomically(mark, b"%d %s" % (os.getpid(), _boot_id()))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                mark.unlink(missing_ok=True)

    def records(self) -> list[EngineRecord]:
        paths = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        found = [(path, self._read(path)) for path in paths if not path.name.endswith(".previous.json")]
        # A record under another key's name was not put there by us.
        return [record for path, record in found if record and path == self._record_path(record.key)]

    def prune(self, keep: list[EngineRecord]) -> list[Path]:
        """Remove every engine and left-over but these, what they fall back to, and the marks against them."""
        kept = set[Path]()
        for record in keep:
            kept |= {self._record_path(record.key), *self._files_of(record)}
            if previous := self._read(self._previous_path(record.key)):
                kept |= {self._previous_path(record.key), *self._files_of(previous)}
        suffixes = {".json", ".plan", LAYERS, *MARKS}
        files = [p for p in self.folder.iterdir() if p.suffix in suffixes] if self.folder.is_dir() else []
        removed = [path for path in sorted(files) if path not in kept]
        for path in removed:
            path.unlink(missing_ok=True)
        return removed

    def _read(self, path: Path) -> EngineRecord | None:
        try:
            with open(path, "rb") as file:
                return EngineRecord.model_validate_json(file.read(LARGEST_RECORD_BYTES))
        except (OSError, ValidationError):
            return None

    def _files_of(self, record: EngineRecord) -> list[Path]:
        return [self.folder / f"{record.plan_file}{end}" for end in ("", LAYERS, *MARKS)]

    def _layers_path(self, record: EngineRecord) -> Path:
        return self.folder / f"{record.plan_file}{LAYERS}"

    def _record_path(self, key: EngineKey) -> Path:
        return self.folder / f"{key.name}.json"

    def _previous_path(self, key: EngineKey) -> Path:
        return self.folder / f"{key.name}.previous.json"


def store_of(bundle: Path) -> EngineStore:
    """Beside the bundle, whose own bytes never change."""
    return EngineStore(bundle.with_name(f"{bundle.name}.engines"))


def wanted_key(
    bundle: Bundle,
    precision: Precision,
    *,
    tensorrt: str,
    gpu: str,
    compute: str,
    batch: int = 1,
    device: Device = "gpu",
) -> EngineKey:
    fixed, height, width, channels = bundle.manifest.input_shape
    return EngineKey(
        onnx_sha256=sha256(bundle.model_bytes(precision)),
        tensorrt=tensorrt,
        gpu=gpu,
        compute=compute,
        precision=precision,
        shape=(fixed or batch, height, width, channels),
        device=device,
    )


def _crashed(mark: bytes) -> bool:
    """Another process may be opening the same plan right now; a mark under our own number is an old one.

    A mark of an earlier boot is no evidence: a power cut ends every process.
    """
    process, _, boot = mark.partition(b" ")
    if boot not in (b"", _boot_id()):
        return False
    return process == b"%d" % os.getpid() or not os.path.exists(b"/proc/" + (process or b"none"))


def _boot_id() -> bytes:
    """Of this boot of the machine; nothing where the kernel does not tell."""
    with contextlib.suppress(OSError):
        return BOOT_ID.read_bytes().strip()
    return b""


def _record_bytes(record: EngineRecord) -> bytes:
    return record.model_dump_json(indent=2).encode() + b"\n"
