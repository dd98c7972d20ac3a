"""`edge-road fleet` in a process of its own, beside a real broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from mosquitto import Broker, free_port


class FleetService:
    def __init__(self, folder: Path, broker: Broker, *options: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "fleet.log"
        words = ["--broker", f"127.0.0.1:{broker.port}", "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edge_road.cli", "fleet", *words],
            stderr=open(self.log, "wb"),  # noqa: SIM115
        )

    def __enter__(self) -> FleetService:
        self.wait_for(lambda: self.get("health").status_code == 200)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.url}/{path}", timeout=10)

    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["vehicle"]: row for row in self.get("vehicles").json()}

    def states(self) -> dict[str, str]:
        return {name: row["state"] for name, row in self.rows().items()}

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        ends_s = time.monotonic() + timeout_s
        while time.monotonic() < ends_s:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if condition():
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())
