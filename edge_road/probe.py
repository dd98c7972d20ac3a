"""Probe frames: real pictures at model size with the logits each artefact must give, as npz without pickle.

An npz file is a zip archive, and both the archive and the arrays in it say how large they want to
become. What they say is checked before a byte is unpacked.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_road.errors import BundleError

PROBE_FILE = "probe.npz"
MOST_ARRAYS = 16
LARGEST_PROBE_BYTES = 256 * 2**20
"""unpacked; 256 pictures of 400 x 500 take 154 MB"""
LOGITS = "logits_"


@dataclass(frozen=True)
class Probe:
    """Real frames at model size, and the logits that each artefact must give for them."""

    images_NHWC: npt.NDArray[np.uint8]
    labels_N: npt.NDArray[np.int64]
    logits_NC: Mapping[str, npt.NDArray[np.float32]]
    """by precision"""

    def to_bytes(self) -> bytes:
        arrays: dict[str, npt.NDArray[Any]] = {"images": self.images_NHWC, "labels": self.labels_N}
        arrays |= {f"{LOGITS}{precision}": logits for precision, logits in self.logits_NC.items()}
        return _npz_bytes(arrays)

    @classmethod
    def from_bytes(cls, content: bytes) -> Probe:
        try:
            arrays = _read_npz(content)
            logits = {k.removeprefix(LOGITS): v for k, v in arrays.items() if k.startswith(LOGITS)}
            probe = cls(arrays["images"], arrays["labels"], logits)
            probe._check()
        except (ValueError, KeyError, OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise _unreadable(error) from None
        except (zipfile.BadZipFile, zlib.error) as error:
            raise _unreadable(error) from None
        return probe

    def _check(self) -> None:
        images, count = self.images_NHWC, len(self.images_NHWC)
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3 or count == 0:
            raise ValueError(f"images are {images.dtype} {images.shape}")
        if self.labels_N.dtype.kind not in "iu" or self.labels_N.shape != (count,):
            raise ValueError(f"labels are {self.labels_N.dtype} {self.labels_N.shape} for {count} images")
        for name, logits_NC in self.logits_NC.items():
            if logits_NC.dtype != np.float32 or logits_NC.ndim != 2 or len(logits_NC) != count:
                raise ValueError(f"logits of {name} are {logits_NC.dtype} {logits_NC.shape}")
            if not np.isfinite(logits_NC).all():
                raise ValueError(f"logits of {name} are not finite")


def _read_npz(content: bytes) -> dict[str, npt.NDArray[Any]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(set(names)) != len(names) or len(names) > MOST_ARRAYS:
            raise ValueError(f"{len(names)} arrays, {len(set(names))} of them with a name of their own")
        if sum(member.file_size for member in members) > LARGEST_PROBE_BYTES:
            raise ValueError(f"it would unpack to more than {LARGEST_PROBE_BYTES} bytes")
        return {
            member.filename.removesuffix(".npy"): _read_array(_unpack(archive, member)) for member in members
        }


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """`archive.read` unpacks all that is there before it looks at the size; so do all other methods."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"an array packed by method {member.compress_type}")
    with archive.open(member) as file:
        return file.read(member.file_size)


def _read_array(content: bytes) -> npt.NDArray[Any]:
    """numpy reserves what the header asks for, so that is compared with what is there."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"array format {version}")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.hasobject or fortran_order or any(size < 0 for size in shape):
        raise ValueError(f"an array of {dtype} {shape}")
    body = content[file.tell() :]
    if len(body) != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{len(body)} bytes for an array of {dtype} {shape}")
    array: npt.NDArray[Any] = np.frombuffer(body, dtype).reshape(shape).copy()
    return array


def _npz_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """np.savez stamps no time, so equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{k: np.ascontiguousarray(v) for k, v in arrays.items()})
    return buffer.getvalue()


def _unreadable(error: Exception) -> BundleError:
    return BundleError("the probe frames cannot be read", where=PROBE_FILE, got=error)
