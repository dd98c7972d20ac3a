"""Runs the fault tests and writes what they measured into docs/reliability.md: `make_table.py [ROWS.JSONL]`.

With a file of rows (EDGE_ROAD_FAULT_TABLE of an earlier run) nothing is run again.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
FOLDERS = ("tests/faults", "tests/attacks")
FAULTS = {
    1: "camera unplugged, device gone",
    2: "source hangs with its connection open",
    3: "frozen picture with fresh time stamps",
    4: "repeated or backward time stamps",
    5: "black, white, over- or under-exposed",
    6: "dirt, occlusion, fog or drops on the lens",
    7: "night, tunnel, glare",
    8: "truncated JPEG",
    9: "bit-flipped JPEG, damaged H.264",
    10: "picture size or format changes in mid-stream",
    11: "decompression bomb, oversized picture",
    12: "wrong file type, empty file, pipe, loop of links, a million files",
    13: "camera faster than the model, bursts",
    14: "NaN, infinite or impossible model output",
    15: "wrong classes, shape or normalisation",
    16: "model cut, changed, unsigned, wrong key",
    17: "ONNX with data outside the file",
    18: "ONNX with custom operators or bombs",
    19: "engine of another GPU or TensorRT",
    20: "ONNX Runtime silently on the CPU",
    21: "inference hangs",
    22: "out of memory",
    23: "wall clock jumps",
    24: "publisher's loop stuck",
    25: "SIGTERM, Ctrl-C, SIGHUP",
    26: "SIGKILL during any write",
    27: "disk full, I/O error, read-only",
    28: "event store corrupt",
    29: "broker away, flapping, slow, refusing",
    30: "slow or dead local consumer",
    31: "two daemons, stale lock",
    32: "typo in the settings",
    33: "unauthenticated control, DNS rebinding",
    34: "path traversal",
    35: "log injection, secrets in logs",
    36: "hostile MQTT command",
    37: "hostile source string",
    38: "metrics cardinality, slow clients",
}
HEADER = """\
# Reliability: what was promised, what was measured

One line per measurement of the fault tests (`tests/faults`, `tests/attacks`); the numbers are those of the
fault matrix. *Told* is the time from the fault to the message that names it, *back* the time from the end of
the fault to the next road state; the promise stands in brackets, and a test fails when it is broken. On a
machine with more work than cores a test allows as many times more, which the table does not, and up to three
attempts: the row then says which of them it tells of. Times include the test's own process switching on a
shared machine. Nothing here was done on a vehicle: rows that need hardware (a GPU, a Jetson, a camera) are
tested at the boundary of the process, as *how* says.

Made by `python tests/faults/make_table.py`, which runs the tests ({machine}); do not edit.

| # | fault | what was done | how | said | told | back |
|---|---|---|---|---|---|---|
"""

CLOSING = """
## Longer runs

- `python tests/soak/soaking.py 900`: a quarter of an hour of failing cameras, brokers, disks and workers;
  memory, descriptors and threads stay flat, no event is lost, no state is wrong.
- `python benchmarks/fault_times.py`: 200 losses of a camera, starts, ends and lost workers, as percentiles
  beside the promises.
- `python tests/attacks/fuzz_texts.py FOLDER -max_total_time=600`: coverage-guided fuzzing of every reader of
  bytes from outside; `EDGE_ROAD_READER=NAME` picks one.
- `EDGE_ROAD_KILL_POINTS=20000 pytest tests/faults/test_outbox_kills.py`: more kill points for events.
- `tests/mutants.sh`: `decision.py` and `quality.py` changed in 627 small ways (mutmut), each run against
  their own tests: 626 were noticed (2026-11-19), the other one compares with a limit that no sum can equal.
  The same tests reach every line and branch of both (`coverage run --branch`).

An event that was recorded survives a kill and a power cut and is delivered at least once, in order; when room
runs out, or a file is damaged, a gap record names what is missing. A gap after damage may name events that
had been delivered before, never the reverse. States are not queued: an old road state is worse than none.
"""


def main() -> int:
    if len(sys.argv) > 1:
        PAGE.write_text(page(read_rows(Path(sys.argv[1]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        code = run_tests(rows)
        PAGE.write_text(page(read_rows(rows)))
    return code


def run_tests(rows: Path) -> int:
    """Only the files that measure something for the table; a crowded machine gets all the time it needs."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("test_*.py"))]
    chosen = [str(path) for path in files if "fault_row" in path.read_text()]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-o", "timeout=900", *chosen]
    environment = {**os.environ, "EDGE_ROAD_FAULT_TABLE": str(rows)}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def page(rows: list[dict[str, Any]]) -> str:
    newest = {(row["row"], row["what"]): row for row in rows}  # a repeated test counts once
    lines = [_line(newest[key]) for key in sorted(newest)]
    missing = [f"{n} ({name})" for n, name in FAULTS.items() if n not in {row["row"] for row in rows}]
    unmeasured = f"\nNot measured by these tests: {'; '.join(missing)}.\n" if missing else ""
    machine = f"here on {os.cpu_count()} {platform.machine()} cores with Python {platform.python_version()}"
    return HEADER.format(machine=machine) + "\n".join(lines) + "\n" + unmeasured + CLOSING


def _line(row: dict[str, Any]) -> str:
    said = f"`{row['state']}`" + (f" `{row['reason']}`" if row["reason"] else "") if row["state"] else ""
    again = f"attempt {row['attempt']}" if row["attempt"] > 1 else ""
    said = "; ".join(filter(None, [said, row["note"], again]))
    times = (_time(row["detect_s"], row["detect_limit_s"]), _time(row["recover_s"], row["recover_limit_s"]))
    cells = (str(row["row"]), FAULTS[row["row"]], row["what"], row["how"], said, *times)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _time(took_s: float | None, limit_s: float | None) -> str:
    if took_s is None:
        return ""
    if limit_s is None:
        return f"{took_s:.2f} s"
    return f"{took_s:.2f} s ({limit_s:g})" + (" **missed**" if took_s > limit_s else "")


if __name__ == "__main__":
    sys.exit(main())
