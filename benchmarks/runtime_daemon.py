"""Our daemon as users run it, watched from outside: its messages, and what its two processes take."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tomli_w

from benchmarks.runtime_material import ROOT, Material
from benchmarks.stopwatch import WARM_UP, peak_resident_mb
from edge_road.road_state import RoadState, parse_message

FASTEST_HZ = 1000.0
"""the most that a vehicle file may ask for"""
PATIENCE_S = 120.0
FEWEST = 5
"""frames in the window, also on a machine that hardly gets to it"""


@dataclass(frozen=True)
class Sample:
    """At one moment: processor seconds and peak memory, of supervisor and worker."""

    at_ns: int
    cpu_s: tuple[float, ...]
    resident_mb: tuple[float, ...]


def watch_daemon(material: Material, video: Path, seconds: float, threads: int) -> dict[str, object]:
    """From the first answer on for `seconds`, and what a loop's stopwatch would say of it."""
    messages = material.home / "messages.jsonl"
    messages.unlink(missing_ok=True)
    (material.home / "vehicle.toml").write_text(tomli_w.dumps(_vehicle(material, video, threads)))
    command = [sys.executable, str(ROOT / "runtime/road_daemon.py"), "--vehicle", "vehicle.toml"]
    with open(material.home / "daemon.txt", "wb") as said:
        process = subprocess.Popen(
            [*command, "--messages", str(messages)],
            cwd=material.home,
            env={**os.environ, "EDGE_ROAD_HOME": str(material.home)},
            stderr=said,
        )
    try:
        warm = _wait_for(WARM_UP, process, messages)
        before = _sample(process.pid)
        time.sleep(seconds)
        _wait_for(len(warm) + FEWEST, process, messages)
        after = _sample(process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
    return _report(_judged(messages), before, after)


def _vehicle(material: Material, video: Path, threads: int) -> dict[str, object]:
    """Random weights are sure of nothing: what they say is let through, so that every frame has an answer."""
    return {
        "source": {"kind": "video", "path": str(video), "loop": True},
        "bundle": str(material.bundle),
        "trust": {"allow_unsigned": True},
        "rate": FASTEST_HZ,
        "threads": threads,
        "decision": {"confidence": 0.34, "familiar_radii": 1e9},
        "quality": {"least_structure": 0.0},
    }


def _wait_for(count: int, process: subprocess.Popen[bytes], messages: Path) -> list[RoadState]:
    """Until so many frames have been judged."""
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s and process.poll() is None:
        if len(judged := _judged(messages)) > count:
            return judged
        time.sleep(0.2)
    raise RuntimeError(
        f"the daemon judges too little: {messages.with_name('daemon.txt').read_text()[-2000:]}"
    )


def _judged(messages: Path) -> list[RoadState]:
    """Each judged frame once, in the order in which they were told."""
    lines = messages.read_bytes().splitlines(keepends=True) if messages.exists() else []
    found: dict[int, RoadState] = {}
    for message in (parse_message(line) for line in lines if line.endswith(b"\n")):
        if message.captured_mono_ns is not None and "predict" in message.stage_ms:
            found.setdefault(message.captured_mono_ns, message)
    return list(found.values())


def _report(judged: list[RoadState], before: Sample, after: Sample) -> dict[str, object]:
    steady = [m for m in judged if before.at_ns <= m.published_mono_ns <= after.at_ns]
    lasted_s = (after.at_ns - before.at_ns) / 1e9
    supervisor, worker = (1000 * (b - a) / len(steady) for a, b in zip(before.cpu_s, after.cpu_s))
    stages = {name: [m.stage_ms[name] for m in steady if name in m.stage_ms] for name in steady[0].stage_ms}
    supervisor_mb, worker_mb = after.resident_mb
    beyond_ms = [m.age_ms - sum(m.stage_ms.values()) for m in steady if m.age_ms is not None]
    return {
        "fps": len(steady) / lasted_s,
        "latency_ms": [m.age_ms for m in steady if m.age_ms is not None],
        "cpu_s_per_1000": supervisor + worker,
        "supervisor_cpu_s_per_1000": supervisor,
        **{f"stage {name}": statistics.median(times) for name, times in stages.items()},
        "beyond_p99_ms": float(np.percentile(beyond_ms, 99)),
        "supervisor_mb": supervisor_mb,
        "worker_mb": worker_mb,
        "resident_mb": supervisor_mb + worker_mb,
        "first_answer_ns": judged[0].published_mono_ns,
    }


def _sample(pid: int) -> Sample:
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    return Sample(time.monotonic_ns(), tuple(map(_cpu_s, pids)), tuple(map(peak_resident_mb, pids)))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
