"""A bundle: one folder with everything a vehicle needs, named and hashed by its manifest.

Nothing in it can run code (JSON, ONNX, npz without pickle). Files are read once, checked
against the manifest, and used from memory: the verified bytes are the bytes that run.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.errors import BundleError, EdgeRoadError
from edge_road.files import sha256, write_folder_atomically
from edge_road.preprocess import Preprocessing

MANIFEST_FILE = "manifest.json"
PROBE_FILE = "probe.npz"
REPORT_FILE = "report.json"
LARGEST_FILE_BYTES = 512 * 2**20

Precision = Literal["float32", "float16", "int8"]
MODEL_FILES: dict[Precision, str] = {
    "float32": "model.onnx",
    "float16": "model.fp16.onnx",
    "int8": "model.int8.onnx",
}


class FileRecord(StrictModel):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class Artefact(StrictModel):
    """One model file, and what the runtime must know of this very file."""

    file: str
    temperature: float = Field(gt=0)
    """already inside the graph: `probabilities` = softmax(logits / temperature)"""
    confidence_threshold: float = Field(ge=0, le=1)
    """below it the answer is `unknown`"""
    centroids: tuple[tuple[float, ...], ...]
    """mean feature of each class over the training images"""
    radii: tuple[float, ...]
    """distance to the own centroid that 99 % of the training images of each class stay within"""


class Calibration(StrictModel):
    """How the INT8 scales were found."""

    method: str
    images: int
    digest: str
    """sha256 over the calibration images as the model saw them"""


class Manifest(StrictModel):
    schema_version: Literal[1] = 1
    name: str
    version: str
    """of edge_road, when the bundle was written"""
    classes: tuple[str, ...]
    preprocessing: Preprocessing
    input_name: str
    input_shape: tuple[int, int, int, int]
    """batch, height, width, 3; a batch of 0 stands for any"""
    outputs: dict[str, tuple[int, ...]]
    """name -> shape without the batch: probabilities, logits, features"""
    artefacts: dict[Precision, Artefact]
    calibration: Calibration | None
    smoke_limits: dict[str, float]
    """perturbation -> least accuracy on the probe frames that this bundle must keep on any machine"""
    method: str
    seed: int
    recipe: dict[str, Any]
    recipe_digest: str
    data_digest: str
    git_commit: str | None
    files: dict[str, FileRecord]

    @property
    def class_list(self) -> ClassList:
        return ClassList(self.classes)


@dataclass(frozen=True)
class Probe:
    """Real frames at model size, and the logits that each artefact must give for them."""

    images_NHWC: npt.NDArray[np.uint8]
    labels_N: npt.NDArray[np.int64]
    logits_NC: Mapping[str, npt.NDArray[np.float32]]
    """by precision"""

    def to_bytes(self) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"images": self.images_NHWC, "labels": self.labels_N}
        arrays |= {f"logits_{precision}": logits for precision, logits in self.logits_NC.items()}
        return _npz_bytes(arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> Probe:
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                prefix = "logits_"
                logits = {k[len(prefix) :]: arrays[k] for k in arrays.files if k.startswith(prefix)}
                return cls(arrays["images"], arrays["labels"], logits)
        except (ValueError, KeyError, OSError) as error:
            raise BundleError("the probe frames cannot be read", where=PROBE_FILE, got=error) from None


@dataclass(frozen=True)
class Bundle:
    """A verified bundle, held in memory."""

    path: Path
    manifest: Manifest
    contents: Mapping[str, bytes]
    digest: str
    """sha256 of the manifest, which names every other file's"""

    def model_bytes(self, precision: Precision) -> bytes:
        return self.contents[self.artefact(precision).file]

    def artefact(self, precision: Precision) -> Artefact:
        try:
            return self.manifest.artefacts[precision]
        except KeyError:
            raise BundleError(
                f"the bundle has no {precision} model",
                where=self.path,
                expected=", ".join(self.manifest.artefacts),
            ) from None

    def probe(self) -> Probe:
        return Probe.from_bytes(self.contents[PROBE_FILE])


def record_files(contents: Mapping[str, bytes]) -> dict[str, FileRecord]:
    return {name: FileRecord(sha256=sha256(c), size=len(c)) for name, c in sorted(contents.items())}


def write_bundle(path: Path, manifest: Manifest, contents: Mapping[str, bytes]) -> str:
    """Write all files and the manifest in one step; returns the bundle's digest."""
    if record_files(contents) != manifest.files:
        raise EdgeRoadError("the manifest does not describe the files it is written with")
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True, allow_nan=False) + "\n"
    write_folder_atomically(path, {**contents, MANIFEST_FILE: text.encode()})
    return sha256(text.encode())


def load_bundle(path: Path) -> Bundle:
    """Read and verify every file that the manifest names; anything wrong is a BundleError."""
    raw = _read(path, MANIFEST_FILE, limit=16 * 2**20)
    manifest = _parse_manifest(path, raw)
    contents = {name: _read_verified(path, name, record) for name, record in manifest.files.items()}
    named = {artefact.file for artefact in manifest.artefacts.values()} | {PROBE_FILE}
    if missing := sorted(named - contents.keys()):
        raise BundleError("the manifest names no hash for a file", where=path, got=", ".join(missing))
    return Bundle(path, manifest, contents, sha256(raw))


def _parse_manifest(path: Path, raw: bytes) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(raw)
        manifest.class_list  # noqa: B018  (refuses classes without a road state)
    except (ValidationError, EdgeRoadError) as error:
        raise BundleError("the manifest is not valid", where=path / MANIFEST_FILE, got=error) from None
    return manifest


def _read_verified(path: Path, name: str, record: FileRecord) -> bytes:
    if Path(name).name != name or name in ("", ".", ".."):
        raise BundleError("a bundle's files lie in its own folder", where=path, got=repr(name))
    content = _read(path, name, limit=record.size)
    if len(content) != record.size or sha256(content) != record.sha256:
        raise BundleError(
            "a bundle file is cut or changed",
            where=path / name,
            got=f"{len(content)} bytes, sha256 {sha256(content)[:16]}...",
            expected=f"{record.size} bytes, sha256 {record.sha256[:16]}...",
            fix="export the run again, or copy the bundle again",
        )
    return content


def _read(path: Path, name: str, limit: int) -> bytes:
    """At most one byte more than `limit`, so that a huge file is noticed and not loaded."""
    try:
        with open(path / name, "rb") as file:
            return file.read(min(limit, LARGEST_FILE_BYTES) + 1)
    except OSError as error:
        raise BundleError(
            "a bundle file cannot be read",
            where=path / name,
            got=error.strerror,
            fix="python export/to_trt.py makes a bundle",
        ) from None


def _npz_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """np.savez stamps no time, so equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()
