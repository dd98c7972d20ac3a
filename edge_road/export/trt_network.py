"""From ONNX bytes to a TensorRT plan, written once for TensorRT 10.3 to 11 and TensorRT-RTX.

The vendor's module is an argument: the call that proves a model on a build machine is the call
that builds the engine on a Jetson. The network is strongly typed and INT8 comes from the Q/DQ
nodes of the graph, because version 11 removed precision flags and calibrators.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from edge_road.backends.onnxrt import INPUT_NAME


class BuildRefused(Exception):
    """TensorRT does not take the model; `reasons` are its own words."""

    def __init__(self, reasons: list[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


@dataclass(frozen=True)
class BuildShape:
    """The images an engine takes: 1 to `largest` of them, best `typical`; or the graph's fixed batch."""

    height: int
    width: int
    fixed: int = 0
    typical: int = 1
    largest: int = 8

    def of_batch(self, batch: int) -> tuple[int, int, int, int]:
        return (batch, self.height, self.width, 3)


@dataclass(frozen=True)
class BuildOptions:
    workspace_mib: int = 512
    version_compatible: bool = False
    dla_core: int | None = None
    timing_cache: bytes | None = None
    """of an earlier build on this device; empty: begin one; none: do without"""


@dataclass(frozen=True)
class Built:
    plan: bytes
    timing_cache: bytes | None


def build_plan(trt: Any, logger: Any, onnx_bytes: bytes, shape: BuildShape, workspace_mib: int) -> bytes:
    return build(trt, logger, onnx_bytes, shape, BuildOptions(workspace_mib)).plan


def build(trt: Any, logger: Any, onnx_bytes: bytes, shape: BuildShape, options: BuildOptions) -> Built:
    """Builder, network and parser stay referenced until the plan is out, as the vendor asks for."""
    try:
        builder = trt.Builder(logger)
    except Exception as error:  # the bindings have no error of their own: TypeError where CUDA is broken
        raise BuildRefused([f"it cannot start here: {error}"]) from None
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(onnx_bytes):
        raise BuildRefused([_error_text(parser.get_error(i)) for i in range(parser.num_errors)])
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_mib * 2**20)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if options.version_compatible:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
    if options.dla_core is not None:
        _use_dla(trt, builder, config, options.dla_core)
    if options.timing_cache is not None:
        _use_timing_cache(config, options.timing_cache)
    if not shape.fixed:
        profile = builder.create_optimization_profile()
        # A DLA knows no open batch: TensorRT would silently leave every layer to the GPU.
        on_gpu = options.dla_core is None
        batches = (1, shape.typical, shape.largest) if on_gpu else (shape.largest,) * 3
        profile.set_shape(INPUT_NAME, *(shape.of_batch(batch) for batch in batches))
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise BuildRefused(["the builder gave no engine"])
    return Built(bytes(plan), None if options.timing_cache is None else _timing_cache(config))


def has_dla(version: str) -> bool:
    """DLA was last in 10.7, is absent from 11.0 to 11.4.0, and back in 11.4.1."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    return (10, 3) <= numbers < (10, 8) or numbers >= (11, 4, 1)


def _use_dla(trt: Any, builder: Any, config: Any, core: int) -> None:
    if not has_dla(trt.__version__) or core >= builder.num_DLA_cores:
        cores = builder.num_DLA_cores if has_dla(trt.__version__) else "none"
        raise BuildRefused([f"no DLA core {core} here: TensorRT {trt.__version__} finds {cores}"])
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = core
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)


def _use_timing_cache(config: Any, stored: bytes) -> None:
    """A cache of another device or version is set aside by TensorRT itself; then it begins anew."""
    cache = config.create_timing_cache(stored)
    if cache is None or not config.set_timing_cache(cache, False):
        config.set_timing_cache(config.create_timing_cache(b""), False)


def _timing_cache(config: Any) -> bytes | None:
    cache = config.get_timing_cache()
    return None if cache is None else bytes(cache.serialize())


def _error_text(parser_error: Any) -> str:
    return f"{parser_error.node_name() or 'model'}: {' '.join(parser_error.desc().split())[:300]}"
