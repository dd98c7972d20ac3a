"""Training with one process and with two, by torchrun as the guide has it, on rendered roads.

python -m benchmarks.torchrun
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.outcome import Table
from benchmarks.rounds import Spread, ratio, take_turns
from edge_road.run_record import METRICS_FILE

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 2


def torchrun_table() -> Table:
    """Pictures a second in the last epoch: the first one also loads and warms up."""
    found = take_turns({f"{n}": partial(images_per_s, n) for n in (1, 2)}, ROUNDS)
    rows = [(n, Spread.of(speed).text(1), ratio(speed, found["1"]).text()) for n, speed in found.items()]
    title = f"torchrun on {len(os.sched_getaffinity(0))} cores, one thread each"
    return Table(title, ("processes", "pictures/s", "of one process"), rows)


def images_per_s(processes: int, pictures: int = 384, epochs: int = 3) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        launch = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={processes}",
        ]
        wishes = ["--recipe", "synthetic", "--epochs", str(epochs), "--run-folder", str(run)]
        for setting in (f"data.train={pictures}", "data.validation=30", "data.test=3", "training.threads=1"):
            wishes += ["--set", setting]
        done = subprocess.run(
            [*launch, "training/train_road.py", *wishes],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=900,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[:2000])
        last = (run / METRICS_FILE).read_text().splitlines()[-1]
        return float(json.loads(last)["images_per_s"])


if __name__ == "__main__":
    print("\n".join(torchrun_table().lines()))
