"""The CUDA driver through ctypes: is there a GPU, and the few calls that an engine needs.

TensorRT's own objects can crash where there is no GPU, so the driver is asked first. A vehicle
has this library wherever it has a GPU; no other package is needed.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_road.errors import BackendError, DeviceError

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_STREAM_NON_BLOCKING = 1
_CAPTURE_THREAD_LOCAL = 1
"""other threads may use the driver while this one captures"""


@dataclass(frozen=True)
class Gpu:
    name: str
    """with its size: an Orin Nano and an AGX Orin are both called Orin, and take each other's plans badly"""
    compute: str
    """compute capability, e.g. 8.7 on Orin"""


def load_driver(library: str = LIBRARY) -> Any:
    return ctypes.CDLL(library)


def find_gpu(library: str = LIBRARY) -> Gpu | None:
    """The first CUDA device, or none; never raises and never starts a context."""
    try:
        driver = load_driver(library)
    except OSError:
        return None
    count, device = c_int(), c_int()
    if not hasattr(driver, "cuInit") or driver.cuInit(0) != 0:
        return None
    if driver.cuDeviceGetCount(byref(count)) != 0 or count.value < 1:
        return None
    if driver.cuDeviceGet(byref(device), 0) != 0:
        return None
    major, minor = (_attribute(driver, device, which) for which in (_MAJOR, _MINOR))
    return Gpu(_name(driver, device), f"{major}.{minor}")


def require_gpu() -> Gpu:
    gpu = find_gpu()
    if gpu is None:
        raise BackendError(
            "an engine needs a GPU",
            got="this machine has no NVIDIA GPU",
            fix="run this on the device, or use the ONNX backend",
        )
    return gpu


class Cuda:
    """One stream on the first device, with the memory and the captured work that belong to it."""

    def __init__(self) -> None:
        self._driver = load_driver()
        self._call("cuInit", c_uint(0))
        self._device, self._context, stream = c_int(), c_void_p(), c_void_p()
        self._call("cuDeviceGet", byref(self._device), c_int(0))
        # The primary context is the one that TensorRT, which speaks the runtime API, uses as well.
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        self.make_current()
        self._call("cuStreamCreate", byref(stream), c_uint(_STREAM_NON_BLOCKING))
        self.stream = int(stream.value or 0)
        self._frees: list[tuple[str, Any]] = []
        self.close: Callable[[], None] = weakref.finalize(self, _release, self._driver, self._frees)
        self._frees += [
            ("cuDevicePrimaryCtxRelease_v2", self._device),
            ("cuStreamDestroy_v2", c_void_p(self.stream)),
        ]

    def make_current(self) -> None:
        """For the calling thread; cheap."""
        self._call("cuCtxSetCurrent", self._context)

    def allocate(self, size: int) -> int:
        """Device memory of `size` bytes."""
        pointer = c_uint64()
        self._call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        self._frees.append(("cuMemFree_v2", pointer))
        return pointer.value

    def allocate_host(self, size: int) -> npt.NDArray[np.uint8]:
        """Host memory that the device can copy from and to while the processor goes on."""
        pointer = c_void_p()
        self._call("cuMemHostAlloc", byref(pointer), c_size_t(size), c_uint(0))
        self._frees.append(("cuMemFreeHost", pointer))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(pointer.value or 0)))

    def upload(self, device: int, host: npt.NDArray[np.uint8], size: int) -> None:
        arguments = (c_uint64(device), c_void_p(host.ctypes.data), c_size_t(size), c_void_p(self.stream))
        self._call("cuMemcpyHtoDAsync_v2", *arguments)

    def download(self, host: npt.NDArray[np.uint8], device: int, size: int) -> None:
        arguments = (c_void_p(host.ctypes.data), c_uint64(device), c_size_t(size), c_void_p(self.stream))
        self._call("cuMemcpyDtoHAsync_v2", *arguments)

    def wait(self) -> None:
        self._call("cuStreamSynchronize", c_void_p(self.stream))

    def capture(self, enqueue: Callable[[], None]) -> CapturedWork | None:
        """Record what `enqueue` puts on the stream; none when that cannot be recorded."""
        stream, graph, executable = c_void_p(self.stream), c_void_p(), c_void_p()
        self._call("cuStreamBeginCapture_v2", stream, c_int(_CAPTURE_THREAD_LOCAL))
        try:
            enqueue()
            recorded = True
        except BackendError:
            recorded = False
        # The capture must be ended in any case, or the stream stays unusable.
        if self._driver.cuStreamEndCapture(stream, byref(graph)) != 0 or not recorded or not graph.value:
            return None
        code = self._driver.cuGraphInstantiateWithFlags(byref(executable), graph, c_uint64(0))
        self._driver.cuGraphDestroy(graph)
        return None if code != 0 else CapturedWork(self, executable)

    def launch(self, executable: c_void_p) -> None:
        self._call("cuGraphLaunch", executable, c_void_p(self.stream))

    def drop(self, executable: c_void_p) -> None:
        self._call("cuGraphExecDestroy", executable)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code != 0:
            raise DeviceError("the GPU's driver refuses a call", where=name, got=f"CUDA error {code}")


@dataclass(frozen=True)
class CapturedWork:
    """Copies and kernels that start with one call instead of many."""

    cuda: Cuda
    executable: c_void_p

    def launch(self) -> None:
        self.cuda.launch(self.executable)

    def drop(self) -> None:
        self.cuda.drop(self.executable)


def _release(driver: Any, frees: list[tuple[str, Any]]) -> None:
    """Last in, first out; errors at the end of a process are nobody's concern."""
    while frees:
        name, argument = frees.pop()
        getattr(driver, name)(argument)


def _name(driver: Any, device: c_int) -> str:
    text = ctypes.create_string_buffer(256)
    known = driver.cuDeviceGetName(text, 256, device) == 0
    name = text.value.decode(errors="replace") if known else "unknown"
    count = _attribute(driver, device, _MULTIPROCESSORS)
    return f"{name} ({count} SM)" if count else name


def _attribute(driver: Any, device: c_int, which: int) -> int:
    value = c_int()
    return value.value if driver.cuDeviceGetAttribute(byref(value), which, device) == 0 else 0
