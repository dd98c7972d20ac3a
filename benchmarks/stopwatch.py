"""What a loop over frames tells of itself; standard library only, so that every rival can carry it."""

from __future__ import annotations

import json
import time
from pathlib import Path

WARM_UP = 20
"""frames that are not counted"""


class Stopwatch:
    """`answered` after every frame, until it says that the time is up; then `print_report`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first_ns = self._began_ns = self._ended_ns = 0
        self._began_cpu_s = self._ended_cpu_s = 0.0
        self._answers = 0
        self._latency_ms: list[float] = []

    def answered(self, decoded_ns: int) -> bool:
        """The frame that was decoded at `decoded_ns` has its answer; true while there is time left."""
        now_ns = time.monotonic_ns()
        self._first_ns = self._first_ns or now_ns
        self._answers += 1
        if self._answers == WARM_UP:
            self._began_ns, self._began_cpu_s = now_ns, time.process_time()
        if self._answers <= WARM_UP:
            return True
        self._latency_ms.append((now_ns - decoded_ns) / 1e6)
        self._ended_ns, self._ended_cpu_s = now_ns, time.process_time()
        return now_ns - self._began_ns < 1e9 * self._seconds

    def print_report(self) -> None:
        frames, seconds = len(self._latency_ms), (self._ended_ns - self._began_ns) / 1e9
        report = {
            "fps": frames / seconds,
            "latency_ms": self._latency_ms,
            "cpu_s_per_1000": 1000 * (self._ended_cpu_s - self._began_cpu_s) / frames,
            "resident_mb": peak_resident_mb("self"),
            "first_answer_ns": self._first_ns,
        }
        print(json.dumps(report), flush=True)


def peak_resident_mb(process: int | str) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
