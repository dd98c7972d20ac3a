"""A stand-in for libcuda: the calls that we use, on ordinary memory, as asynchronous as the real ones.

Work on a stream waits until the stream is synchronised, work under capture until its graph is
launched, and memory that was freed or is too small for a copy is noticed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from edge_road.backends import cuda

Work = Callable[[], None]
CURRENT: list[FakeDriver] = []
"""the driver that the fake TensorRT puts its kernels on"""


class FakeDriver:
    def __init__(self, name: str = "Orin", compute: tuple[int, int] = (8, 7)) -> None:
        self.name, self.compute = name, compute
        self.memory: dict[int, ctypes.Array[Any]] = {}
        self.queue: list[Work] = []
        self.capturing: list[Work] | None = None
        self.graphs: dict[int, list[Work]] = {}
        self.launches = 0
        self.contexts = 0
        self.refuses_capture = False
        CURRENT[:] = [self]

    def enqueue(self, work: Work) -> None:
        (self.queue if self.capturing is None else self.capturing).append(work)

    def region(self, address: int, size: int) -> ctypes.Array[Any]:
        block = self.memory.get(address)
        assert block is not None, "memory that is not ours: the real driver would crash"
        assert size <= len(block), "a copy beyond its memory"
        return block

    def cuInit(self, flags: Any) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, device: Any, ordinal: Any) -> int:
        return 0

    def cuDeviceGetName(self, text: Any, length: int, device: Any) -> int:
        text.value = self.name.encode()
        return 0

    def cuDeviceGetAttribute(self, value: Any, which: int, device: Any) -> int:
        known = dict(zip((75, 76), self.compute))
        value._obj.value = known.get(which, 0)
        return 0 if which in known else 1

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = 1
        self.contexts += 1
        return 0

    def cuDevicePrimaryCtxRelease_v2(self, device: Any) -> int:
        self.contexts -= 1
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        return 0

    def cuStreamCreate(self, stream: Any, flags: Any) -> int:
        stream._obj.value = 7
        return 0

    def cuStreamDestroy_v2(self, stream: Any) -> int:
        return 0

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        block = (ctypes.c_uint8 * size.value)()
        pointer._obj.value = ctypes.addressof(block)
        self.memory[ctypes.addressof(block)] = block
        return 0

    def cuMemHostAlloc(self, pointer: Any, size: Any, flags: Any) -> int:
        return self.cuMemAlloc_v2(pointer, size)

    def cuMemFree_v2(self, pointer: Any) -> int:
        del self.memory[pointer.value]
        return 0

    def cuMemFreeHost(self, pointer: Any) -> int:
        return self.cuMemFree_v2(pointer)

    def cuMemcpyHtoDAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        self.region(target.value, size.value)
        self.region(source.value, size.value)
        self.enqueue(lambda: ctypes.memmove(target.value, source.value, size.value) and None)
        return 0

    def cuMemcpyDtoHAsync_v2(self, target: Any, source: Any, size: Any, stream: Any) -> int:
        return self.cuMemcpyHtoDAsync_v2(target, source, size, stream)

    def cuStreamSynchronize(self, stream: Any) -> int:
        assert self.capturing is None, "a stream under capture cannot be waited for"
        assert stream.value == 7
        while self.queue:
            self.queue.pop(0)()
        return 0

    def cuStreamBeginCapture_v2(self, stream: Any, mode: Any) -> int:
        self.capturing = []
        return 0

    def cuStreamEndCapture(self, stream: Any, graph: Any) -> int:
        work, self.capturing = self.capturing, None
        if self.refuses_capture:
            return 900  # CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        assert work is not None
        graph._obj.value = len(self.graphs) + 1
        self.graphs[graph._obj.value] = work
        return 0

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: Any, flags: Any) -> int:
        executable._obj.value = graph.value
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        return 0

    def cuGraphLaunch(self, executable: Any, stream: Any) -> int:
        self.launches += 1
        self.queue += self.graphs[executable.value]
        return 0

    def cuGraphExecDestroy(self, executable: Any) -> int:
        del self.graphs[executable.value]
        return 0


def install_fake_gpu(monkeypatch: pytest.MonkeyPatch, **properties: Any) -> FakeDriver:
    driver = FakeDriver(**properties)
    monkeypatch.setattr(cuda, "load_driver", lambda *_: driver)
    return driver


def remove_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library(*_: Any) -> Any:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cuda, "load_driver", no_library)
