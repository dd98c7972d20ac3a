"""Is there a GPU? Asked of the driver alone: TensorRT's own objects can crash where there is none."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


@dataclass(frozen=True)
class Gpu:
    name: str
    compute: str
    """compute capability, e.g. 8.7 on Orin"""


def find_gpu(library: str = "libcuda.so.1") -> Gpu | None:
    """The first CUDA device, or none; never raises and never starts a context."""
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return None
    count, device = ctypes.c_int(), ctypes.c_int()
    if not hasattr(driver, "cuInit") or driver.cuInit(0) != 0:
        return None
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value < 1:
        return None
    if driver.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    return Gpu(
        _name(driver, device), f"{_attribute(driver, device, _MAJOR)}.{_attribute(driver, device, _MINOR)}"
    )


def _name(driver: ctypes.CDLL, device: ctypes.c_int) -> str:
    text = ctypes.create_string_buffer(256)
    return (
        text.value.decode(errors="replace") if driver.cuDeviceGetName(text, 256, device) == 0 else "unknown"
    )


def _attribute(driver: ctypes.CDLL, device: ctypes.c_int, which: int) -> int:
    value = ctypes.c_int()
    return value.value if driver.cuDeviceGetAttribute(ctypes.byref(value), which, device) == 0 else 0
