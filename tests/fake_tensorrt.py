"""A stand-in for NVIDIA's `tensorrt` module: the calls, enums and refusals of 10.3 to 11.4.

tests/unit/export/test_tensorrt_api.py compares every name and parameter with the real bindings.
Like the real one it insists on the types of its arguments, gives None instead of an engine, and
needs its logger, network and parser alive; a plan of another version would crash, so it must not
come here. An engine computes what its ONNX model computes, on the stream of the fake driver.
"""

from __future__ import annotations

import ctypes
import enum
import json
import sys
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import fake_cuda
import numpy as np
import onnx
import onnxruntime
import pytest

PLAN_START = b"plan"


class Severity(enum.IntEnum):
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)


class NetworkFlag10(enum.IntEnum):
    EXPLICIT_BATCH, STRONGLY_TYPED = range(2)


class NetworkFlag11(enum.IntEnum):
    """The flag is another bit since version 11 removed EXPLICIT_BATCH."""

    STRONGLY_TYPED = 0


def network_flags(version: str) -> type[enum.IntEnum]:
    """TensorRT-RTX, which counts from 1, is like 11."""
    return NetworkFlag10 if version.startswith("10.") else NetworkFlag11


class ILogger:
    Severity = Severity


class Logger(ILogger):
    def __init__(self, min_severity: Severity = Severity.WARNING) -> None:
        self.min_severity = Severity(min_severity)


class INetworkDefinition:
    def __init__(self, flags: int, version: str) -> None:
        strongly_typed = 1 << network_flags(version)["STRONGLY_TYPED"]
        assert flags == strongly_typed, "only a strongly typed network takes explicit Q/DQ in every version"
        self._model: onnx.ModelProto | None = None


class OnnxParser:
    """Refuses what the real parser refuses of our graphs: a zero point that is not zero."""

    def __init__(self, network: INetworkDefinition, logger: ILogger) -> None:
        assert isinstance(network, INetworkDefinition)
        assert isinstance(logger, ILogger)
        self._network, self._errors = network, list[Any]()

    def parse(self, model: bytes, path: str | None = None) -> bool:
        proto = onnx.load_model_from_string(bytes(model))
        for tensor in proto.graph.initializer:
            if tensor.name.endswith("_zero") and onnx.numpy_helper.to_array(tensor).any():
                self._errors.append(ParserError(tensor.name, "Assertion failed: zero point must be\nzero"))
        self._network._model = proto
        return not self._errors

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        return self._errors[index]


class ParserError:
    def __init__(self, node: str, text: str) -> None:
        self._node, self._text = node, text

    def node_name(self) -> str:
        return self._node

    def desc(self) -> str:
        return self._text


class IOptimizationProfile:
    def __init__(self) -> None:
        self._shapes: dict[str, tuple[tuple[int, ...], ...]] = {}

    def set_shape(self, input: str, min: tuple[int, ...], opt: tuple[int, ...], max: tuple[int, ...]) -> None:
        assert all(a <= b <= c for a, b, c in zip(min, opt, max)), "min <= opt <= max"
        self._shapes[input] = (min, opt, max)


class ITimingCache:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def serialize(self) -> bytes:
        return self._content


class IBuilderConfig:
    def __init__(self, version: str) -> None:
        self._version = version
        self._profiles: list[IOptimizationProfile] = []
        self._pools: dict[Any, int] = {}
        self._flags: list[str] = []
        self._cache: ITimingCache | None = None
        self.profiling_verbosity: Any = None
        self.default_device_type: Any = None
        self.DLA_core = -1

    def set_memory_pool_limit(self, pool: Any, pool_size: int) -> None:
        self._pools[pool] = pool_size

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def set_flag(self, flag: Any) -> None:
        self._flags.append(flag.name)

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache:
        return ITimingCache(bytes(serialized_timing_cache))

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:
        """A cache of another version is refused."""
        if cache._content and not cache._content.startswith(self._version.encode()):
            return False
        self._cache = cache
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        return self._cache


class Builder:
    _version = "10.3.0"
    num_DLA_cores = 0

    def __init__(self, logger: ILogger) -> None:
        assert isinstance(logger, ILogger)
        self._logger = weakref.ref(logger)

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        return INetworkDefinition(flags, type(self)._version)

    def create_builder_config(self) -> IBuilderConfig:
        return IBuilderConfig(type(self)._version)

    def create_optimization_profile(self) -> IOptimizationProfile:
        return IOptimizationProfile()

    def build_serialized_network(self, network: INetworkDefinition, config: IBuilderConfig) -> bytes | None:
        assert self._logger() is not None, "the logger was freed: the real builder would crash"
        if network._model is None:
            return None
        dynamic = any(d.dim_param for d in network._model.graph.input[0].type.tensor_type.shape.dim)
        if dynamic and not config._profiles:
            return None
        if config._cache is not None:
            config._cache._content = f"{config._version} timings".encode()
        head = {
            "version": config._version,
            "profiles": [profile._shapes for profile in config._profiles],
            "pools": sorted(config._pools.values()),
            "flags": sorted(config._flags),
            "dla": config.DLA_core,
        }
        return PLAN_START + json.dumps(head).encode() + b"\n" + network._model.SerializeToString()


class Runtime:
    _version = "10.3.0"

    def __init__(self, logger: ILogger) -> None:
        assert fake_cuda.CURRENT, "without a GPU the real one would crash"
        self._logger = weakref.ref(logger)
        self.engine_host_code_allowed = False
        self.DLA_core = -1

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        if not serialized_engine.startswith(PLAN_START):
            return None
        head, _, model = serialized_engine.removeprefix(PLAN_START).partition(b"\n")
        values = json.loads(head)
        assert values["version"] == type(self)._version, "a plan of another version: the real one may crash"
        assert values["dla"] == self.DLA_core, "the real one may choose another core"
        if "VERSION_COMPATIBLE" in values["flags"] and not self.engine_host_code_allowed:
            return None
        return ICudaEngine(values, model)


class ICudaEngine:
    def __init__(self, head: dict[str, Any], model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        options.intra_op_num_threads = 1
        self._profiles = head["profiles"]
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._values = [*self._session.get_inputs(), *self._session.get_outputs()]
        self._named = {value.name: value for value in self._values}

    @property
    def num_io_tensors(self) -> int:
        return len(self._values)

    def get_tensor_name(self, index: int) -> str:
        return str(self._values[index].name)

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name == self._values[0].name else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        types = {"tensor(uint8)": DataType.UINT8, "tensor(float)": DataType.FLOAT}
        return types.get(self._named[name].type, DataType.HALF)

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(size if isinstance(size, int) else -1 for size in self._named[name].shape)

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        return [tuple(shape) for shape in self._profiles[profile_index][name]]

    def create_execution_context(self) -> IExecutionContext:
        return IExecutionContext(self)

    def create_engine_inspector(self) -> EngineInspector:
        return EngineInspector()


class EngineInspector:
    def get_engine_information(self, format: Any) -> str:
        layers = [
            {"Name": f"layer {node}", "LayerType": "CaskConvolution", "Metadata": f"[ONNX Layer: {node}]"}
            | {"Inputs": [{"Name": "a", "Format/Datatype": data_type}]}
            for node, data_type in (("Conv_3", "Int8 NHWC"), ("Conv_5", "Float"))
        ]
        return json.dumps({"Layers": layers})


class IExecutionContext:
    def __init__(self, engine: ICudaEngine) -> None:
        self._engine, self._addresses = engine, dict[str, int]()
        self._shape = engine.get_tensor_shape("images")

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        fixed = self._engine.get_tensor_shape(name)
        bounds = [fixed] if fixed[0] > 0 else self._engine.get_tensor_profile_shape(name, 0)
        fits = bounds[0][0] <= shape[0] <= bounds[-1][0] and shape[1:] == fixed[1:]
        self._shape = shape if fits else self._shape
        return fits

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self._addresses[name] = memory
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        assert len(self._addresses) == self._engine.num_io_tensors
        assert all(size > 0 for size in self._shape), "a shape that was never set"
        shape = self._shape
        fake_cuda.CURRENT[0].enqueue(lambda: self._compute(shape))
        return True

    def _compute(self, shape: tuple[int, ...]) -> None:
        """The real one reads and writes device memory while the caller goes on."""
        driver = fake_cuda.CURRENT[0]
        count = int(np.prod(shape))
        images = np.frombuffer(driver.region(self._addresses["images"], count), np.uint8, count)
        names = [value.name for value in self._engine._values[1:]]
        for name, output in zip(names, self._engine._session.run(names, {"images": images.reshape(shape)})):
            driver.region(self._addresses[name], output.nbytes)
            ctypes.memmove(self._addresses[name], np.ascontiguousarray(output).ctypes.data, output.nbytes)


class DataType(enum.IntEnum):
    FLOAT, HALF, INT8, INT32, BOOL, UINT8 = range(6)


class TensorIOMode(enum.IntEnum):
    NONE, INPUT, OUTPUT = range(3)


class DeviceType(enum.IntEnum):
    GPU, DLA = range(2)


class BuilderFlag(enum.IntEnum):
    GPU_FALLBACK, VERSION_COMPATIBLE = range(2)


class MemoryPoolType(enum.IntEnum):
    WORKSPACE, TACTIC_DRAM = range(2)


class ProfilingVerbosity(enum.IntEnum):
    LAYER_NAMES_ONLY, NONE, DETAILED = range(3)


class LayerInformationFormat(enum.IntEnum):
    ONELINE, JSON = range(2)


CLASSES = (
    *(ILogger, Logger, INetworkDefinition, OnnxParser, ParserError, IOptimizationProfile, ITimingCache),
    *(IBuilderConfig, Runtime, ICudaEngine, EngineInspector, IExecutionContext, Builder),
)
ENUMS = (
    *(DataType, TensorIOMode, DeviceType, BuilderFlag, MemoryPoolType, ProfilingVerbosity),
    LayerInformationFormat,
)


def plan_of(onnx_bytes: bytes, largest: int = 4, fixed: bool = False) -> bytes:
    """What the builder makes of a model, without the product's help."""
    logger = Logger()
    builder = Builder(logger)
    network, config = builder.create_network(2), builder.create_builder_config()
    assert OnnxParser(network, logger).parse(onnx_bytes)
    assert network._model is not None
    if not fixed:
        sizes = [d.dim_value for d in network._model.graph.input[0].type.tensor_type.shape.dim][1:]
        profile = builder.create_optimization_profile()
        profile.set_shape("images", (1, *sizes), (1, *sizes), (largest, *sizes))
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    return plan


def install_fake_tensorrt(
    monkeypatch: pytest.MonkeyPatch, version: str = "10.3.0", dla_cores: int = 0
) -> ModuleType:
    module: Any = ModuleType("tensorrt")
    module.__version__ = version
    module.__spec__ = SimpleNamespace(name="tensorrt")
    module.NetworkDefinitionCreationFlag = network_flags(version)
    for kind in (*CLASSES, *ENUMS):
        setattr(module, kind.__name__, kind)
    monkeypatch.setattr(Builder, "_version", version)
    monkeypatch.setattr(Builder, "num_DLA_cores", dla_cores)
    monkeypatch.setattr(Runtime, "_version", version)
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    return module
