"""Time and memory of one model file on this machine: ONNX Runtime, one thread, a process of its own.

In the exporting process torch would count too. The figures belong to the machine, so they stand beside a
bundle and never in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from edge_road.backends.timing import MEASURED, WARM_UP, median_ms
from edge_road.config import StrictModel

TIME_LIMIT_S = 120.0


class Footprint(StrictModel):
    latency_ms: float
    """median of single images"""
    memory_mb: float
    """most that the process has held, Python and ONNX Runtime included"""


def footprint(onnx_bytes: bytes, size: tuple[int, int], batch: int = 0) -> Footprint | str:
    """The figures, or why there are none."""
    command = [sys.executable, "-m", "edge_road.export.footprint", *map(str, (*size, batch or 1))]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        child = subprocess.run(command, input=onnx_bytes, capture_output=True, timeout=TIME_LIMIT_S, env=here)
    except subprocess.TimeoutExpired:
        return f"it did not answer {WARM_UP + MEASURED} images within {TIME_LIMIT_S:.0f} s"
    if child.returncode != 0:
        last = child.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit {child.returncode}"]
        return f"it cannot run in a process of its own: {last[0][:300]}"
    return Footprint.model_validate_json(child.stdout)


def main() -> None:
    import numpy as np

    from edge_road.backends.onnxrt import INPUT_NAME, OUTPUT_NAMES, open_session

    height, width, batch = map(int, sys.argv[1:4])
    session = open_session(sys.stdin.buffer.read(), "the model")
    images_NHWC = np.zeros((batch, height, width, 3), np.uint8)
    took_ms = median_ms(lambda: session.run(list(OUTPUT_NAMES), {INPUT_NAME: images_NHWC}))
    print(json.dumps({"latency_ms": round(took_ms / batch, 3), "memory_mb": round(_most_memory_mb(), 1)}))


def _most_memory_mb() -> float:
    """Not getrusage's: that also counts what the parent held when this process was forked from it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


if __name__ == "__main__":
    main()
