"""The bundle's self-test on demand, in a process of its own: one at a time, and never for long."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from edge_road.clock import SystemClock, utc_text
from edge_road.manifest import Precision
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle

LONGEST_S = 120.0
ON = {"CPU": "onnx", "CUDA": "onnx_cuda", "Tensorrt": "onnx_tensorrt"}
"""the backend, by the last word of its predictor's name"""


class SelfTest:
    """`vehicle` tells the settings of now."""

    def __init__(self, status: Status, vehicle: Callable[[], Vehicle]) -> None:
        self._status, self._vehicle = status, vehicle
        self._running = False
        self._newest: dict[str, Any] | None = None

    def newest(self) -> dict[str, Any]:
        """The last result, for those who come later."""
        return {"running": self._running, "newest": self._newest}

    async def run(self) -> dict[str, Any]:
        vehicle = self._vehicle()
        if self._running or vehicle.bundle is None:
            return {"error": "one is running" if self._running else "there is no bundle"}
        self._running = True
        try:
            backend, precision = _on_duty(self._status.predictor, vehicle)
            result = await _result(vehicle.bundle, backend, precision)
        except asyncio.CancelledError:
            return {"error": "the daemon ends"}
        finally:
            self._running = False
        if "passed" in result:
            self._newest = {"at": utc_text(SystemClock().utc()), **result}
        return result


def _on_duty(predictor: str, vehicle: Vehicle) -> tuple[str, str]:
    """What a predictor's name says, e.g. `onnx int8 on CPU`: `auto` chooses, and an engine may not serve."""
    words = predictor.split()
    precision = next((word for word in words if word in get_args(Precision)), vehicle.precision)
    backend = "tensorrt" if predictor.startswith("tensorrt") else ON.get(words[-1] if words else "", "onnx")
    return backend, precision


async def _result(bundle: Path, backend: str, precision: str) -> dict[str, Any]:
    """Of the model that is on duty."""
    words = ["smoke", str(bundle), "--json", "--threads", "1", "--backend", backend, "--precision", precision]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge_road.cli",
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=lambda: os.nice(10),  # the road comes first
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), LONGEST_S)
        return _for_people(json.loads(output), precision)
    except (asyncio.TimeoutError, ValueError, LookupError, TypeError):
        return {"error": "the self-test gave no result"}
    finally:
        if process.returncode is None:
            process.kill()


def _for_people(result: dict[str, Any], precision: str) -> dict[str, Any]:
    accuracies = result["models"][precision]["accuracies"]
    checks = [
        {"name": name, "accuracy": accuracies[name], "least": least}
        for name, least in result["limits"].items()
    ]
    return {"passed": result["passed"], "checks": checks}
