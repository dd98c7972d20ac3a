"""From ONNX bytes to a TensorRT plan, written once for TensorRT 10.3 to 11 and TensorRT-RTX.

The vendor's module is an argument: the call that proves a model on a build machine is the call
that builds the engine on a Jetson. The network is strongly typed and INT8 comes from the Q/DQ
nodes of the graph, because version 11 removed precision flags and calibrators.
"""

from __future__ import annotations

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


def build_plan(trt: Any, logger: Any, onnx_bytes: bytes, shape: BuildShape, workspace_mib: int) -> bytes:
    """Builder, network and parser stay referenced until the plan is out, as the vendor asks for."""
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(onnx_bytes):
        raise BuildRefused([_error_text(parser.get_error(i)) for i in range(parser.num_errors)])
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, workspace_mib * 2**20)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if not shape.fixed:
        profile = builder.create_optimization_profile()
        batches = (1, shape.typical, shape.largest)
        profile.set_shape(INPUT_NAME, *(shape.of_batch(batch) for batch in batches))
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise BuildRefused(["the builder gave no engine"])
    return bytes(plan)


def _error_text(error: Any) -> str:
    return f"{error.node_name() or 'model'}: {' '.join(error.desc().split())[:300]}"
