"""The child process of the TensorRT-RTX check: ONNX bytes in on stdin, JSON out on stdout.

It runs apart because the vendor's library may end the process or never return.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from edge_road.export.engine import import_tensorrt_rtx
from edge_road.export.trt_network import BuildRefused, BuildShape, build_plan

WORKSPACE_MIB = 1024


def main() -> None:
    try:
        trt = import_tensorrt_rtx()
    except (ImportError, OSError) as error:  # there, but without the libraries it needs
        print(json.dumps({"missing": " ".join(str(error).split())[:300]}))
        return
    logger, lines = _recording_logger(trt)
    shape = BuildShape(**json.loads(sys.argv[1]))
    answer: dict[str, Any] = {"version": trt.__version__, "reasons": [], "plan_bytes": 0}
    try:
        answer["plan_bytes"] = len(build_plan(trt, logger, sys.stdin.buffer.read(), shape, WORKSPACE_MIB))
    except BuildRefused as refusal:
        answer["reasons"] = [*refusal.reasons, *_errors(trt, lines)]
    answer["kernels"] = [row for _, text in lines for row in text.splitlines() if row.startswith("Name: ")]
    print(json.dumps(answer))


def _recording_logger(trt: Any) -> tuple[Any, list[tuple[Any, str]]]:
    lines: list[tuple[Any, str]] = []

    class Recorder(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, text: str) -> None:
            lines.append((severity, text))

    return Recorder(), lines


def _errors(trt: Any, lines: list[tuple[Any, str]]) -> list[str]:
    severe = (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR)
    return [" ".join(text.split())[:300] for severity, text in lines if severity in severe]


if __name__ == "__main__":
    main()
