"""A bundle: one folder with everything a vehicle needs, named and hashed by its manifest.

Nothing in it can run code (JSON, ONNX, npz without pickle). Files are read once, checked
against the manifest, and used from memory: the verified bytes are the bytes that run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from edge_road.errors import BundleError, EdgeRoadError
from edge_road.files import sha256, write_folder_atomically
from edge_road.manifest import (
    LARGEST_MANIFEST_BYTES,
    MANIFEST_FILE,
    Artefact,
    Calibration,
    FileRecord,
    Manifest,
    Precision,
    manifest_bytes,
    parse_manifest,
)
from edge_road.probe import PROBE_FILE, Probe
from edge_road.trust import DEVELOPMENT, SIGNATURE_BYTES, SIGNATURE_FILE, Trust, check_signature

__all__ = [
    "MANIFEST_FILE",
    "MODEL_FILES",
    "PROBE_FILE",
    "REPORT_FILE",
    "Artefact",
    "Bundle",
    "Calibration",
    "FileRecord",
    "Manifest",
    "Precision",
    "Probe",
    "load_bundle",
    "record_files",
    "write_bundle",
]

REPORT_FILE = "report.json"
LARGEST_FILE_BYTES = 512 * 2**20
LARGEST_BUNDLE_BYTES = 1024 * 2**20

MODEL_FILES: dict[Precision, str] = {
    "float32": "model.onnx",
    "float16": "model.fp16.onnx",
    "int8": "model.int8.onnx",
}


@dataclass(frozen=True)
class Bundle:
    """A verified bundle, held in memory."""

    path: Path
    manifest: Manifest
    contents: Mapping[str, bytes]
    digest: str
    """sha256 of the manifest, which names every other file's"""
    signed_by: str | None = None
    """id of the trusted key that signed it"""
    has_signature: bool = False

    @property
    def trust_text(self) -> str:
        """For people: whose bundle this is."""
        if self.signed_by is not None:
            return f"signed by {self.signed_by}"
        return "signature not checked" if self.has_signature else "unsigned"

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


def write_bundle(
    path: Path,
    manifest: Manifest,
    contents: Mapping[str, bytes],
    sign: Callable[[bytes], bytes] | None = None,
) -> str:
    """Write all files, the manifest and its signature in one step; returns the bundle's digest."""
    if record_files(contents) != manifest.files:
        raise EdgeRoadError("the manifest does not describe the files it is written with")
    text = manifest_bytes(manifest)
    signature = {} if sign is None else {SIGNATURE_FILE: sign(text)}
    write_folder_atomically(path, {**contents, MANIFEST_FILE: text, **signature})
    return sha256(text)


def load_bundle(path: Path, trust: Trust = DEVELOPMENT) -> Bundle:
    """Read and verify every file that the manifest names; anything wrong is a BundleError.

    The signature is looked at first: bytes that nobody vouches for are not even parsed.
    """
    raw = _read(path, MANIFEST_FILE, limit=LARGEST_MANIFEST_BYTES)
    signature = _read_signature(path)
    signed_by = check_signature(raw, signature, trust, path)
    manifest = parse_manifest(raw, path / MANIFEST_FILE)
    _check_names(path, manifest)
    contents = {name: _read_verified(path, name, record) for name, record in manifest.files.items()}
    return Bundle(path, manifest, contents, sha256(raw), signed_by, signature is not None)


def _check_names(path: Path, manifest: Manifest) -> None:
    for name in manifest.files:
        reserved = name in ("", ".", "..", MANIFEST_FILE, SIGNATURE_FILE)
        if reserved or Path(name).name != name or not name.isprintable() or "\\" in name:
            raise BundleError("a bundle's files lie in its own folder", where=path, got=repr(name))
    if sum(record.size for record in manifest.files.values()) > LARGEST_BUNDLE_BYTES:
        raise BundleError("the bundle is too large", where=path, expected=f"{LARGEST_BUNDLE_BYTES} bytes")
    named = {artefact.file for artefact in manifest.artefacts.values()} | {PROBE_FILE}
    if missing := sorted(named - manifest.files.keys()):
        raise BundleError("the manifest names no hash for a file", where=path, got=", ".join(missing))


def _read_verified(path: Path, name: str, record: FileRecord) -> bytes:
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


def _read_signature(path: Path) -> bytes | None:
    """None only when there is nothing of that name: whatever else is there must be a signature."""
    there = os.path.lexists(path / SIGNATURE_FILE)
    return _read(path, SIGNATURE_FILE, SIGNATURE_BYTES) if there else None


def _read(path: Path, name: str, limit: int) -> bytes:
    """At most one byte more than `limit`, so that a huge file is noticed and not loaded."""
    try:
        # Without O_NONBLOCK a pipe in the place of a file would hold us for ever.
        with open(os.open(path / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise BundleError("a bundle file is not a file", where=path / name)
            return file.read(min(limit, LARGEST_FILE_BYTES) + 1)
    except OSError as error:
        raise BundleError(
            "a bundle file cannot be read",
            where=path / name,
            got=error.strerror,
            fix=_what_to_do(path, name, error),
        ) from None


def _what_to_do(path: Path, name: str, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"let this user read it: chmod -R a+rX {path}"
    return "python export/to_trt.py makes a bundle" if name == MANIFEST_FILE else "copy the bundle again"
