"""How long faults take to be told, and to be over: many trials, percentiles, the promise beside them.

python benchmarks/fault_times.py [--trials 200] [--starts 10] [--json FILE]

The camera is an HTTP camera of 20 pictures a second in this process, the model is the fake one: what is
measured is the daemon. Run it on a quiet machine; it says what the machine did meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]

import numpy as np  # noqa: E402
from camera_servers import HttpCamera  # noqa: E402
from daemon_harness import Daemon, pattern_vehicle  # noqa: E402

Times = dict[str, list[float]]
PROMISES_S = {
    "first heartbeat": 1.0,
    "exit after SIGTERM": 3.0,
    "camera unplugged: told": 0.5,
    "camera unplugged: back": 3.0,
    "camera silent: told": 0.5,
    "camera silent: back": 3.0,
    "worker killed: told": 1.0,
    "worker killed: back": 10.0,
    "worker stuck: told": 1.0,
    "worker stuck: back": 10.0,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="of each loss of the camera")
    parser.add_argument("--starts", type=int, default=10, help="of the daemon, and deaths of its worker")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every single time")
    options = parser.parse_args()
    times: Times = defaultdict(list)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        starts_and_ends(Path(folder), times, options.starts)
        camera_losses(Path(folder), times, options.trials)
        worker_losses(Path(folder), times, options.starts)
    print(f"{os.cpu_count()} cores, load {before:.1f} before and {os.getloadavg()[0]:.1f} after\n")
    print("\n".join(table(times)))
    if options.json:
        options.json.write_text(json.dumps(times))


def starts_and_ends(folder: Path, times: Times, count: int) -> None:
    for _ in range(count):
        with Daemon(folder, vehicle=pattern_vehicle()) as daemon:
            first_s, _ = daemon.wait_for(lambda message: True)
            times["first heartbeat"].append(first_s - daemon.began_s)
            daemon.wait_for_state("dry")
            began_s = time.monotonic()
            daemon.stop()
            times["exit after SIGTERM"].append(time.monotonic() - began_s)


def camera_losses(folder: Path, times: Times, count: int) -> None:
    camera, generator = HttpCamera(), np.random.default_rng(1)
    with Daemon(folder, vehicle=vehicle_of(camera)) as daemon:
        daemon.wait_for_state("dry")
        for _ in range(count):
            for kind, behaviour in (("unplugged", "unplugged"), ("silent", "silent")):
                time.sleep(generator.uniform(0.3, 0.6))  # not in step with anything
                told_s, back_s = lose(daemon, camera, behaviour, generator.uniform(0.6, 1.6))
                times[f"camera {kind}: told"].append(told_s)
                times[f"camera {kind}: back"].append(back_s)
        daemon.stop()
    camera.close()


def lose(daemon: Daemon, camera: HttpCamera, behaviour: str, seconds: float) -> tuple[float, float]:
    began_s = time.monotonic()
    camera.behaviour = behaviour
    told_s = daemon.wait_for_unknown("no_frames", since_s=began_s)
    time.sleep(max(0.0, began_s + seconds - time.monotonic()))
    mended_s = time.monotonic()
    camera.behaviour = "good"
    return told_s - began_s, daemon.wait_for_state("dry", since_s=mended_s) - mended_s


def worker_losses(folder: Path, times: Times, count: int) -> None:
    """A new daemon for each, because the pauses between restarts grow."""
    ways = (("killed", signal.SIGKILL, "worker_died"), ("stuck", signal.SIGSTOP, "inference_stalled"))
    for kind, sent, reason in ways:
        for _ in range(count):
            with Daemon(folder, vehicle=pattern_vehicle()) as daemon:
                daemon.wait_for_state("dry")
                began_s = time.monotonic()
                os.kill(daemon.worker_pid(), sent)
                told_s = daemon.wait_for_unknown(reason, since_s=began_s)
                times[f"worker {kind}: told"].append(told_s - began_s)
                times[f"worker {kind}: back"].append(daemon.wait_for_state("dry", since_s=told_s) - began_s)
                daemon.stop()


def vehicle_of(camera: HttpCamera) -> dict[str, Any]:
    return {
        "vehicle": "test",
        "backend": "fake",
        "source": {"kind": "mjpeg", "url": camera.url, "fps": 20},
        "quality": {"obstructed_s": 0.0},
    }


def table(times: Times) -> list[str]:
    lines = [
        "| seconds | trials | p50 | p95 | p99 | most | promised |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, promise_s in PROMISES_S.items():
        shares_s = [float(np.percentile(times[name], share)) for share in (50, 95, 99, 100)]
        met = "" if shares_s[2] <= promise_s else " **missed**"
        cells = (name, len(times[name]), *(f"{share_s:.2f}" for share_s in shares_s), f"{promise_s:g}{met}")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


if __name__ == "__main__":
    main()
