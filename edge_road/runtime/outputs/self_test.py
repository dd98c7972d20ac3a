"""The bundle's self-test on demand, in a process of its own: one at a time, and never for long."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from edge_road.runtime.vehicle import Vehicle

LONGEST_S = 120.0


class SelfTest:
    def __init__(self, vehicle: Vehicle) -> None:
        self._vehicle = vehicle
        self._running = False

    async def run(self) -> dict[str, Any]:
        if self._running or self._vehicle.bundle is None:
            return {"error": "one is running" if self._running else "there is no bundle"}
        self._running = True
        try:
            return await self._run()
        finally:
            self._running = False

    async def _run(self) -> dict[str, Any]:
        words = ["smoke", str(self._vehicle.bundle), "--json", "--threads", "1"]
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
            result = json.loads(output)
        except (asyncio.TimeoutError, ValueError):
            return {"error": "the self-test gave no result"}
        finally:
            if process.returncode is None:
                process.kill()
        checks = [
            {"name": name, "accuracy": result["accuracies"][name], "least": least}
            for name, least in result["limits"].items()
        ]
        return {"passed": result["passed"], "checks": checks}
