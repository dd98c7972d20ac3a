"""Camera, worker, disk and reader fail; the daemon says `unknown` in time, and comes back by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from daemon_harness import SCRIPT, Daemon, pattern_vehicle, retried_on_a_busy_machine

from edge_road.road_state import RoadState

# kind, reason, and the time in which it must be told
TROUBLES = [
    ("black", "exposure", 0.5),
    ("white", "exposure", 0.5),
    ("nan", "model_output", 0.5),
    ("resize", "frame_size", 0.5),
    ("silence", "no_frames", 0.5),
    ("error", "no_frames", 0.5),
    ("freeze", "frozen", 2.0),
]
EVERY_S, LASTS_S = 2.5, 1.5


@pytest.mark.slow
@retried_on_a_busy_machine
def test_a_drive_full_of_trouble_tells_each_in_time_and_never_makes_a_state_of_it(tmp_path: Path) -> None:
    faults = [
        {"kind": kind, "at": EVERY_S * (number + 1), "seconds": LASTS_S}
        for number, (kind, _, _) in enumerate(TROUBLES)
    ]
    truth = tmp_path / "truth.json"
    with Daemon(tmp_path, vehicle=pattern_vehicle(faults=faults, truth=str(truth))) as daemon:
        daemon.wait_for_state("dry")
        start_s = json.loads(truth.read_text())["start_mono_ns"] / 1e9
        for fault, (_, reason, limit_s) in zip(faults, TROUBLES):
            began_s = start_s + fault["at"]
            told_s = daemon.wait_for_unknown(reason, since_s=began_s)
            assert told_s - began_s <= limit_s, fault
            back_s = daemon.wait_for_state("dry", since_s=began_s + LASTS_S)
            assert back_s - (began_s + LASTS_S) <= 3.0, fault
            if reason not in ("frozen", "frame_size"):  # one begins with good frames, one ends with them
                claims = states_claimed(daemon, began_s, began_s + LASTS_S)
                assert not claims, (fault, claims)
        assert daemon.stop() == 0


def states_claimed(daemon: Daemon, from_s: float, to_s: float) -> list[RoadState]:
    """States whose frame was taken in this time."""
    states = [m for m in daemon.messages if m.state != "unknown"]
    return [m for m in states if from_s <= (m.captured_mono_ns or 0) / 1e9 < to_s - 0.1]


@retried_on_a_busy_machine
def test_a_camera_that_hangs_is_cut_off_with_its_process(tmp_path: Path) -> None:
    faults = [{"kind": "hang", "at": 2.0, "seconds": 3.0}]
    truth = tmp_path / "truth.json"
    vehicle = pattern_vehicle(faults=faults, truth=str(truth), worker={"stall_s": 0.5})
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for_state("dry")
        first_worker = daemon.worker_pid()
        began_s = json.loads(truth.read_text())["start_mono_ns"] / 1e9 + 2.0
        told_s = daemon.wait_for_unknown("no_frames", since_s=began_s)
        assert told_s - began_s <= 0.6
        daemon.wait_for_unknown("worker_died", since_s=told_s)
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        assert back_s - told_s <= 10.0
        assert daemon.worker_pid() != first_worker
        assert daemon.stop() == 0


@retried_on_a_busy_machine
def test_a_killed_worker_is_told_at_once_and_replaced(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        killed_s = time.monotonic()
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        told_s = daemon.wait_for_unknown("worker_died", since_s=killed_s)
        assert told_s - killed_s <= 0.5
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        assert back_s - told_s <= 10.0
        assert daemon.stop() == 0
    assert [m.seq for m in daemon.messages] == list(range(len(daemon.messages)))


@retried_on_a_busy_machine
def test_a_stopped_worker_is_an_inference_that_stalls_and_is_replaced(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        stopped_s = time.monotonic()
        os.kill(daemon.worker_pid(), signal.SIGSTOP)
        told_s = daemon.wait_for_unknown("inference_stalled", since_s=stopped_s)
        assert told_s - stopped_s <= 1.0
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        assert back_s - stopped_s <= 10.0
        assert daemon.stop() == 0


def test_a_drive_goes_on_where_it_was_after_the_worker_died(tmp_path: Path) -> None:
    vehicle = pattern_vehicle(("dry", 2.0), ("icy", 600.0))
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for_state("icy")
        killed_s = time.monotonic()
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        back_s = daemon.wait_for_state(since_s=daemon.wait_for_unknown("worker_died", killed_s))
        assert all(m.state in ("icy", "unknown") for at, m in daemon.received if at >= back_s)
        assert daemon.stop() == 0


def test_the_worker_dies_with_its_supervisor(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        worker = daemon.worker_pid()
        daemon.process.kill()
        daemon.finish()
    for _ in range(100):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.02)
    raise AssertionError("an orphan is left")


def test_a_worker_that_takes_too_much_memory_is_ended_and_the_daemon_is_not(tmp_path: Path) -> None:
    """256 MB of address space do not even hold the libraries."""
    with Daemon(tmp_path, vehicle=pattern_vehicle(worker={"memory_mb": 256})) as daemon:
        daemon.wait_for(lambda m: m.seq >= 4)
        assert {m.state for m in daemon.messages} == {"unknown"}
        assert daemon.stop() == 0


def test_a_second_daemon_is_refused_with_the_owner_named(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_unknown("starting")
        command = [sys.executable, str(SCRIPT), "--vehicle", "vehicle.toml"]
        environment = {**os.environ, "EDGE_ROAD_HOME": str(tmp_path)}
        second = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30
        )
        assert second.returncode == 2
        assert f"process {daemon.process.pid}" in second.stderr
        daemon.process.kill()
        daemon.finish()
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as after_a_kill:
        after_a_kill.wait_for_state("dry")
        assert after_a_kill.stop() == 0


def test_a_full_disk_does_not_stop_the_other_outputs(tmp_path: Path) -> None:
    outputs = [{"path": "/dev/full"}, {"path": "-"}]
    with Daemon(tmp_path, vehicle=pattern_vehicle(outputs=outputs)) as daemon:
        daemon.wait_for_state("dry")
        assert daemon.stop() == 0
    assert daemon.messages[-1].reasons == ("shutdown",)
    assert daemon.stderr.count("are being lost") == 1


def start_plainly(tmp_path: Path) -> subprocess.Popen[bytes]:
    import tomli_w

    vehicle = pattern_vehicle(("dry", 600.0), fps=100, rate=100)
    (tmp_path / "vehicle.toml").write_text(tomli_w.dumps(vehicle))
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), "--vehicle", "vehicle.toml"],
        cwd=tmp_path,
        env={**os.environ, "EDGE_ROAD_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def test_a_reader_that_stands_still_cannot_hold_up_the_end(tmp_path: Path) -> None:
    process = start_plainly(tmp_path)
    try:
        time.sleep(3)  # far more than the pipe can hold
        began_s = time.monotonic()
        process.terminate()
        assert process.wait(10) == 0
        assert time.monotonic() - began_s <= 3.0
    finally:
        process.kill()
        process.wait()


def test_a_reader_that_leaves_ends_the_daemon_quietly(tmp_path: Path) -> None:
    process = start_plainly(tmp_path)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


@retried_on_a_busy_machine
def test_a_folder_of_pictures_may_vanish_and_return(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(20):
        grain = np.random.default_rng(number).integers(50, 70, (64, 96, 1))
        assert cv2.imwrite(str(folder / f"{number:02d}.png"), np.repeat(grain.astype(np.uint8), 3, axis=2))
    source = {"kind": "images", "path": str(folder), "fps": 20, "loop": True}
    with Daemon(tmp_path, vehicle={"backend": "fake", "source": source}) as daemon:
        daemon.wait_for_state("dry")
        shutil.move(folder, tmp_path / "away")
        gone_s = time.monotonic()
        told_s = daemon.wait_for_unknown("no_frames", since_s=gone_s)
        assert told_s - gone_s <= 1.0
        shutil.move(tmp_path / "away", folder)
        back_s = time.monotonic()
        assert daemon.wait_for_state("dry", since_s=back_s) - back_s <= 3.0
        assert daemon.stop() == 0
