"""Row 23: the wall clock of supervisor and worker jumps, and nobody who listens to the states can tell."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from daemon_harness import Daemon, crowding, pattern_vehicle, retried_on_a_busy_machine
from fault_rows import FaultRow

from edge_road.clock import SystemClock
from edge_road.runtime.events.event import Draft, parse_event

JUMPS = {"an hour ahead": 3600, "two hours back": -7200, "to 1970": None}


@pytest.fixture(scope="module")
def jump_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("jump") / "jump_clock.so"
    source = Path(__file__).with_name("jump_clock.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=60)
    return library


@retried_on_a_busy_machine
def test_a_wall_clock_that_jumps_changes_no_state_and_no_rhythm(
    tmp_path: Path, jump_clock: Path, fault_row: FaultRow
) -> None:
    jump = tmp_path / "jump"
    jump.write_text("0")
    environment = {"LD_PRELOAD": str(jump_clock), "EDGE_ROAD_JUMP": str(jump)}
    vehicle = pattern_vehicle(events={"path": str(tmp_path / "events.sqlite")})
    with Daemon(tmp_path, vehicle=vehicle, environment=environment) as daemon:
        daemon.wait_for_state("dry")
        began_s = time.monotonic()
        years = [year_after(daemon, jump, seconds) for seconds in JUMPS.values()]
        ended_s = time.monotonic()
        assert daemon.stop() == 0
    assert years[-1] == 1970, "the clock of the worker did not jump"
    heard = [m for at, m in daemon.received if began_s <= at <= ended_s]
    assert {m.state for m in heard} == {"dry"}, [(m.state, m.reasons) for m in heard]
    stamps_ns = [m.published_mono_ns for m in daemon.messages]
    assert stamps_ns == sorted(stamps_ns)
    assert [m.seq for m in daemon.messages] == list(range(len(daemon.messages)))
    silence_s = max((b.published_mono_ns - a.published_mono_ns) / 1e9 for a, b in itertools.pairwise(heard))
    assert silence_s <= 1.25 * crowding()
    first, *_, last = drafts_of(tmp_path / "events.sqlite")
    assert moment(last.utc) < moment(first.utc)
    assert last.mono_ns > first.mono_ns
    note = f"supervisor and worker; {len(heard)} messages, all `dry`; longest silence {silence_s:.2f} s"
    fault_row(23, f"wall clock jumps {', '.join(JUMPS)}", state="dry", how="a preloaded library", note=note)


def year_after(daemon: Daemon, jump: Path, seconds: int | None) -> int:
    """The year that the worker's frames carry once the jump has come through."""
    now_s = SystemClock().utc().timestamp()
    offset_s = 1000 - round(now_s) if seconds is None else seconds
    aside = jump.with_suffix(".new")
    aside.write_text(str(offset_s))
    os.replace(aside, jump)
    wanted = now_s + offset_s

    def has_jumped(message: Any) -> bool:
        return message.captured_utc is not None and abs(moment(message.captured_utc) - wanted) < 600

    since_s = time.monotonic()
    _, message = daemon.wait_for(has_jumped, since_s=since_s)
    daemon.wait_for(lambda m: m.seq > message.seq + 20, since_s=since_s)
    return datetime.fromtimestamp(moment(str(message.captured_utc)), timezone.utc).year


def drafts_of(store: Path) -> list[Draft]:
    connection = sqlite3.connect(store)
    try:
        lines = connection.execute("SELECT line FROM event ORDER BY id").fetchall()
    finally:
        connection.close()
    return [parse_event(line).draft for (line,) in lines]


def moment(utc_text: str) -> float:
    return datetime.fromisoformat(utc_text.replace("Z", "+00:00")).timestamp()
