"""A stand-in for NVIDIA's `tensorrt` module: the calls, enums and refusals of 10.3 to 11.4.

The interface was compared with the real bindings of both versions. Like the real one it
insists on the types of its arguments, gives None instead of an engine, and needs its logger,
network and parser alive; version 11 lacks what NVIDIA removed.
"""

from __future__ import annotations

import enum
import hashlib
import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import onnx
import pytest


class Severity(enum.IntEnum):
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class NetworkFlag10(enum.IntEnum):
    EXPLICIT_BATCH, STRONGLY_TYPED = range(2)


class NetworkFlag11(enum.IntEnum):
    STRONGLY_TYPED = 1
    PREFER_AOT_PYTHON_PLUGINS = 2


class Logger:
    Severity = Severity

    def __init__(self, min_severity: Severity = Severity.WARNING) -> None:
        self.min_severity = Severity(min_severity)


class Network:
    def __init__(self, flags: int) -> None:
        assert flags == 1 << 1, "only a strongly typed network takes explicit Q/DQ in every version"
        self.model: onnx.ModelProto | None = None


class Parser:
    """Refuses what the real parser refuses of our graphs: a zero point that is not zero."""

    def __init__(self, network: Network, logger: Logger) -> None:
        assert isinstance(network, Network)
        assert isinstance(logger, Logger)
        self.network, self._errors = network, list[Any]()

    def parse(self, model: bytes, path: str | None = None) -> bool:
        proto = onnx.load_model_from_string(bytes(model))
        for tensor in proto.graph.initializer:
            if tensor.name.endswith("_zero") and onnx.numpy_helper.to_array(tensor).any():
                self._errors.append(_error(tensor.name, "Assertion failed: zero point must be\nzero"))
        self.network.model = proto
        return not self._errors

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> Any:
        return self._errors[index]


class Profile:
    def __init__(self) -> None:
        self.shapes: dict[str, tuple[tuple[int, ...], ...]] = {}

    def set_shape(self, input: str, min: tuple[int, ...], opt: tuple[int, ...], max: tuple[int, ...]) -> None:
        assert all(a <= b <= c for a, b, c in zip(min, opt, max)), "min <= opt <= max"
        self.shapes[input] = (min, opt, max)


class Config:
    def __init__(self) -> None:
        self.profiles: list[Profile] = []
        self.pools: dict[Any, int] = {}
        self.profiling_verbosity: Any = None

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        self.pools[pool] = pool_size

    def add_optimization_profile(self, profile: Profile) -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1


class Builder:
    def __init__(self, logger: Logger) -> None:
        assert isinstance(logger, Logger)
        self._logger = weakref.ref(logger)

    def create_network(self, flags: int = 0) -> Network:
        return Network(flags)

    def create_builder_config(self) -> Config:
        return Config()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes | None:
        assert self._logger() is not None, "the logger was freed: the real builder would crash"
        if network.model is None:
            return None
        dynamic = any(d.dim_param for d in network.model.graph.input[0].type.tensor_type.shape.dim)
        if dynamic and not config.profiles:
            return None
        description = f"{[p.shapes for p in config.profiles]} {sorted(config.pools.values())}"
        return b"plan" + hashlib.sha256(network.model.SerializeToString() + description.encode()).digest()


def _error(node: str, text: str) -> Any:
    return SimpleNamespace(node_name=lambda: node, desc=lambda: text, code=lambda: 6)


def install_fake_tensorrt(monkeypatch: pytest.MonkeyPatch, version: str = "10.3.0") -> ModuleType:
    module: Any = ModuleType("tensorrt")
    module.__version__ = version
    module.__spec__ = SimpleNamespace(name="tensorrt")
    is_old = version.startswith("10.")
    module.NetworkDefinitionCreationFlag = NetworkFlag10 if is_old else NetworkFlag11
    module.MemoryPoolType = enum.IntEnum("MemoryPoolType", "WORKSPACE TACTIC_DRAM", start=0)
    module.ProfilingVerbosity = enum.IntEnum("ProfilingVerbosity", "LAYER_NAMES_ONLY NONE DETAILED", start=0)
    module.Logger, module.ILogger, module.Builder, module.OnnxParser = Logger, Logger, Builder, Parser
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    return module
