"""`make bench`: runtime, training steps and scale, one after the other, with tables and pictures.

python -m benchmarks [--only runtime,training,scale] [--quick] [--out DIR]

Writes docs/benchmarks/<date>/: for each benchmark Markdown, JSON and a picture, and a README.md over all
that lie there. Each is a process of its own, so that one's memory and threads do not bear on the next;
one that fails is named, and the others still run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.summary import write_summary
from edge_road.clock import SystemClock

ROOT = Path(__file__).resolve().parents[1]
MODULES = {"runtime": "runtime", "training": "training_step", "scale": "scale"}


def main() -> int:
    chosen = _parser().parse_args()
    if chosen.quick and chosen.out is None:
        with tempfile.TemporaryDirectory() as folder:
            return run(chosen.only.split(","), Path(folder), quick=True)
    out = chosen.out or ROOT / "docs" / "benchmarks" / f"{SystemClock().utc():%Y-%m-%d}"
    return run(chosen.only.split(","), out.resolve(), quick=chosen.quick)


def run(names: list[str], out: Path, *, quick: bool) -> int:
    out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names if not _measure(name, out, quick)]
    print(f"\n{write_summary(out)}")
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


def _measure(name: str, out: Path, quick: bool) -> bool:
    print(f"\n{name}", flush=True)
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{MODULES[name]}", "--out", str(out)]
    return subprocess.run([*command, *(["--quick"] if quick else [])], cwd=ROOT).returncode == 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default=",".join(MODULES), metavar="A,B", help="default: %(default)s")
    parser.add_argument("--quick", action="store_true", help="does it work? its figures mean nothing")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: docs/benchmarks/<date>")
    return parser


if __name__ == "__main__":
    sys.exit(main())
