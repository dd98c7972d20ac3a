"""Row 26 and 27: killed, or refused by the disk, at every write, sync and rename: nothing stored is lost.

EDGE_ROAD_KILL_POINTS sets how many kill points are tried (default 1,000).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_road.runtime.events.event import GAP, Event, parse_event
from edge_road.runtime.events.outbox import Limits, Outbox

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
POINTS = int(os.environ.get("EDGE_ROAD_KILL_POINTS", "1000"))
CHAIN = 120
"""children one after another in one folder; a run of the outbox makes about as many calls"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory: a kill does not reach the disk anyway, and a thousand of them are quicker there."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def kill_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    library = tmp_path_factory.mktemp("kill") / "kill_at.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "kill_at.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


def victims(command: list[str], folder: Path, call: str, children: int, seed: int, **environment: str) -> int:
    """The number of children that died of it."""
    words = [str(folder), call, str(children + 1), str(children), str(seed)]
    done = subprocess.run(
        [*command, sys.executable, str(HERE / "outbox_victim.py"), *words],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)


def hurt_by_strace(folder: Path, call: str, how: str, children: int) -> int:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    inject = f"inject={call}:{how}:when={children + 1}"
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
    return victims(command, folder, call, children, seed=0)


def report_of(folder: Path) -> dict[str, list[Event]]:
    """Torn last lines are the kill's doing: what was not fully reported was not promised."""
    told: dict[str, list[Event]] = defaultdict(list)
    for line in (folder / "report").read_text().splitlines():
        word, _, text = line.partition("\t")
        if text.endswith("}"):
            told[word].append(parse_event(text))
    return told


def check_nothing_is_lost(folder: Path) -> tuple[int, int]:
    told = report_of(folder)
    outbox = Outbox(
        folder / "events.sqlite", "van", "last", Limits(10**9, 10**6), lambda *_: pytest.fail("gap")
    )
    held = [parse_event(entry.line) for entry in outbox.after(0, 10**6)]
    outbox.close()
    arrived = told["delivered"] + held
    present = {(event.boot_id, event.seq) for event in arrived}
    gaps = [event.draft.details for event in arrived if event.draft.kind == GAP]
    ranges = defaultdict(list)
    for gap in gaps:
        ranges[gap["boot_id"]].append((gap["from"], gap["to"]))
    for event in told["stored"]:
        if (event.boot_id, event.seq) not in present:
            assert any(a <= event.seq <= b for a, b in ranges[event.boot_id]), (event.boot_id, event.seq)
    check_order(held)
    check_numbers(arrived, ranges)
    return len({(e.boot_id, e.seq) for e in told["stored"]}), len(gaps)


def check_order(held: list[Event]) -> None:
    last: dict[str, int] = {}
    for event in held:
        assert event.seq > last.get(event.boot_id, -1)
        last[event.boot_id] = event.seq


def check_numbers(arrived: list[Event], ranges: dict[str, list[tuple[int, int]]]) -> None:
    """The backend sees no hole that no gap record explains."""
    numbers = defaultdict(set)
    for event in arrived:
        numbers[event.boot_id].add(event.seq)
    for boot, seqs in numbers.items():
        for hole in set(range(max(seqs))) - seqs:
            assert any(first <= hole <= last for first, last in ranges[boot]), (boot, hole)


def test_killed_at_every_write_sync_and_rename_nothing_is_lost(  # type: ignore[no-untyped-def]
    folder: Path, kill_at: Path, fault_row
) -> None:
    began_s = time.monotonic()
    kills = stored = gaps = 0
    for seed in range(1 + POINTS // CHAIN):
        place = folder / str(seed)
        place.mkdir()
        kills += victims([], place, "preload", CHAIN, seed, LD_PRELOAD=str(kill_at))
        counted = check_nothing_is_lost(place)
        stored, gaps = stored + counted[0], gaps + counted[1]
    print(f"{kills} kills, {stored} events, {gaps} gaps, {time.monotonic() - began_s:.1f} s")
    assert kills >= 0.85 * POINTS
    fault_row(
        26,
        "killed at every write, sync, truncation, unlink and rename",
        state="-",
        how="SIGKILL instead of the call",
        note=f"{kills} kill points, {stored} events, 0 lost",
    )


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_killed_by_strace_nothing_is_lost(folder: Path, call: str) -> None:
    """The same from outside, so that the library that kills is no part of the proof."""
    assert hurt_by_strace(folder, call, "signal=KILL", children=12) >= 10
    check_nothing_is_lost(folder)


@pytest.mark.parametrize(("call", "how"), [("pwrite64", "error=ENOSPC"), ("fdatasync", "error=EIO")])
def test_refused_once_by_the_disk_at_every_call_nothing_is_lost(folder: Path, call: str, how: str) -> None:
    assert hurt_by_strace(folder, call, how, children=12) == 0
    stored, _ = check_nothing_is_lost(folder)
    assert stored > 12
