"""How cost grows with the number of names, files, events and pictures: seconds, and the fitted exponent.

python -m benchmarks.scale [--only 'check data'] [--large] [--quick] [--out DIR]

Counted in processor seconds, which other programs hardly change. The exponent is the slope of
log(seconds) over log(n); of n log n work it lies a little above 1, so the limit is set on
seconds / log(n), between the two largest sizes, where fixed costs hide least.
"""

from __future__ import annotations

import argparse
import gc
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from benchmarks import machine, pictures
from benchmarks.outcome import Claim, Outcome, Table, with_provenance
from benchmarks.rounds import Spread
from benchmarks.scale_subjects import OPERATIONS, SUBJECTS, fresh_folder
from benchmarks.torchrun import torchrun_table

BESIDE_OTHERS = "use a full outbox"
MILLION = (10_000, 100_000, 1_000_000)
SIZES: dict[str, tuple[int, ...]] = {
    "index names": MILLION,
    "walk folders": (1_000, 10_000, 100_000),
    "check data": (1_000, 10_000),
    "fill the outbox": MILLION,
    "drain the outbox": MILLION,
    BESIDE_OTHERS: MILLION,
    "open the outbox": MILLION,
    "report": (1_000, 10_000, 100_000),
    "compare": (1_000, 10_000, 100_000),
}
LARGE = {"check data": (1_000, 10_000, 100_000)}
QUICK: dict[str, tuple[int, ...]] = {
    name: (1_000, 2_000) if name in ("index names", "walk folders") else (100, 400) for name in SIZES
}
ROUNDS = 3
TOLERANCE = 1.1
"""caches and the collector of garbage make even a plain loop a little slower per item when it is long"""
BESIDE_MANY = 0.2
Point = tuple[int, float, float]


@with_provenance
def measure(sizes: dict[str, tuple[int, ...]], *, torchrun: bool = True, quick: bool = False) -> Outcome:
    rounds = {name: _rounds(name, chosen, 1 if quick else ROUNDS) for name, chosen in sizes.items()}
    curves = {name: [_median(points) for points in zip(*found)] for name, found in rounds.items()}
    fitted = {name: exponent([(n, cpu) for n, cpu, _ in points]) for name, points in curves.items()}
    steepness = {name: [_steepness(points) for points in found] for name, found in rounds.items()}
    outcome = Outcome(
        name="scale",
        title="Scale: how cost grows",
        method=(
            "Processor seconds (and seconds of the clock) for n names, files, events or pictures, medians "
            f"of {ROUNDS} rounds; the exponent p of n^p is fitted over all sizes. A full outbox is used for "
            f"{OPERATIONS} events while n others wait."
        ),
        tables=[Table("Growth", ("", "n", "CPU s", "s", "µs each", "exponent"), _rows(curves, fitted))],
        claims=[
            Claim(f"{name}: exponent of seconds / log n", Spread.of(steepness[name]), most=_most(name))
            for name in curves
        ],
        figures={"points": curves, "exponents": fitted},
        picture=pictures.growth({k: [(n, cpu) for n, cpu, _ in p] for k, p in curves.items()}, fitted),
        versions=machine.versions(("edge-road", "numpy", "pydantic", "torch")),
    )
    if torchrun:
        outcome.tables.append(torchrun_table())
    return outcome


def _most(name: str) -> float:
    """What is done a fixed number of times must hardly notice how much waits."""
    return BESIDE_MANY if name == BESIDE_OTHERS else TOLERANCE


def _rounds(name: str, sizes: Sequence[int], times: int) -> list[list[Point]]:
    """After one that is not counted: the first also imports what it needs."""
    if times > 1:
        point_of(name, min(1_000, sizes[0]))
    return [_curve(name, sizes) for _ in range(times)]


def _curve(name: str, sizes: Sequence[int]) -> list[Point]:
    points = [point_of(name, size) for size in sizes]
    for size, cpu_s, seconds in points:
        print(f"  {name:<20}{size:>10,}{cpu_s:>9.2f} CPU s{seconds:>9.2f} s", flush=True)
    return points


def _median(points: Sequence[Point]) -> Point:
    return points[0][0], median(cpu_s for _, cpu_s, _ in points), median(seconds for *_, seconds in points)


def point_of(name: str, size: int) -> Point:
    with fresh_folder() as home, SUBJECTS[name](size, home) as work:
        gc.collect()
        began_cpu_s, began_s = process_time(), perf_counter()
        work()
        return size, process_time() - began_cpu_s, perf_counter() - began_s


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """p of seconds = c * n^p, by least squares on logarithms."""
    sizes, seconds = np.log([n for n, _ in points]), np.log([max(s, 1e-6) for _, s in points])
    return float(np.polyfit(sizes, seconds, 1)[0])


def _steepness(points: Sequence[Point]) -> float:
    """The exponent of seconds / log n between the two largest sizes, where fixed costs hide least."""
    return exponent([(n, cpu_s / math.log(n)) for n, cpu_s, _ in points[-2:]])


def _rows(curves: dict[str, list[Point]], fitted: dict[str, float]) -> list[tuple[str, ...]]:
    return [
        (name, f"{n:,}", f"{cpu:.3f}", f"{seconds:.3f}", _each_us(name, n, cpu), f"{fitted[name]:.2f}")
        for name, points in curves.items()
        for n, cpu, seconds in points
    ]


def _each_us(name: str, n: int, cpu_s: float) -> str:
    """Of one operation: of n, or of the few that are made beside n others."""
    return f"{1e6 * cpu_s / (OPERATIONS if name == BESIDE_OTHERS else n):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", metavar="A,B", help=f"some of: {', '.join(SIZES)}")
    parser.add_argument("--large", action="store_true", help="also check 100,000 files (minutes)")
    parser.add_argument("--quick", action="store_true", help="does it work? its figures mean nothing")
    parser.add_argument("--out", type=Path, help="folder for scale.md, .json and .png")
    chosen = parser.parse_args()
    sizes = QUICK if chosen.quick else {**SIZES, **(LARGE if chosen.large else {})}
    if chosen.only:
        sizes = {name: sizes[name] for name in chosen.only.split(",")}
    outcome = measure(sizes, torchrun=not (chosen.quick or chosen.only), quick=chosen.quick)
    print(outcome.markdown())
    if chosen.out:
        outcome.write(chosen.out)


if __name__ == "__main__":
    main()
