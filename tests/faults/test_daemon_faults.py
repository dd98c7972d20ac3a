"""Camera, worker, disk and reader fail; the daemon says `unknown` in time, and comes back by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from camera_servers import wait_until
from daemon_harness import SCRIPT, Daemon, crowding, pattern_vehicle, retried_on_a_busy_machine

from edge_road.road_state import RoadState

FaultRow = Callable[..., None]

# row of the fault matrix, kind, reason, and the time in which it must be told
TROUBLES = [
    (5, "black", "exposure", 0.5),
    (5, "white", "exposure", 0.5),
    (5, "noise", "noise", 0.5),
    (14, "nan", "model_output", 0.5),
    (10, "resize", "frame_size", 0.5),
    (2, "silence", "no_frames", 0.5),
    (1, "error", "no_frames", 0.5),
    (3, "freeze", "frozen", 2.0),
    (4, "repeat_time", "no_frames", 0.5),
    (4, "back_in_time", "no_frames", 0.5),
    (6, "blur", "low_detail", 0.5),
    (8, "decode", "decode", 0.5),
]
EVERY_S, LASTS_S = 2.5, 1.5
WORDS = {
    "nan": "the model answers NaN",
    "resize": "half the picture size at once",
    "silence": "no frames, source open",
    "error": "the source reports an error",
    "freeze": "the same picture again and again",
    "repeat_time": "frames with one and the same time",
    "back_in_time": "frames that go back in time",
    "blur": "the whole picture out of focus",
    "decode": "pictures that cannot be decoded",
}


@pytest.mark.slow
@retried_on_a_busy_machine
def test_a_camera_ten_times_faster_than_the_model_costs_frames_and_not_freshness(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    """20 pictures a second before answers that take half a second: each is of the newest picture."""
    period_ms, frames = 50.0, 20
    patient = pattern_vehicle(fps=20, decision={"fresh_s": 3.0, "reset_s": 5.0})
    with Daemon(tmp_path, vehicle=patient, environment={"EDGE_ROAD_FAULT": "model.slow@0-600"}) as daemon:
        daemon.wait_for(lambda m: len(answers(daemon)) > frames)
        assert daemon.stop() == 0
    answered = answers(daemon)[1:]  # before the first one the model was loaded
    ages_ms = np.array([m.age_ms for m in answered], float)
    inferences_ms = np.array([m.stage_ms["predict"] for m in answered])
    assert inferences_ms.min() >= 10 * period_ms
    assert np.percentile(ages_ms, 99) <= (period_ms + 1.5 * inferences_ms.max()) * crowding()
    waited_ms = ages_ms - inferences_ms
    assert np.median(waited_ms) <= 1.3 * period_ms, waited_ms  # the second one in a queue is older
    took_ms = ((answered[-1].captured_mono_ns or 0) - (answered[0].captured_mono_ns or 0)) / 1e6
    came, dropped = took_ms / period_ms, answered[-1].dropped - answered[0].dropped
    assert dropped == pytest.approx(came - (len(answered) - 1), rel=0.1)
    note = f"frame age p99 {np.percentile(ages_ms, 99):.0f} ms, {dropped} of {came:.0f} dropped and counted"
    fault_row(13, "20 fps before a model of 500 ms", state="", how="a whole daemon", note=note)


def answers(daemon: Daemon) -> list[RoadState]:
    """The first message of each judged picture."""
    first = dict[int, RoadState]()
    for message in daemon.messages:
        if message.captured_mono_ns is not None and "predict" in message.stage_ms:
            first.setdefault(message.captured_mono_ns, message)
    return list(first.values())


@pytest.mark.slow
@retried_on_a_busy_machine
def test_a_drive_full_of_trouble_tells_each_in_time_and_never_makes_a_state_of_it(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    faults = [
        {"kind": kind, "at": EVERY_S * (number + 1), "seconds": LASTS_S}
        for number, (_, kind, _, _) in enumerate(TROUBLES)
    ]
    truth = tmp_path / "truth.json"
    with Daemon(tmp_path, vehicle=pattern_vehicle(faults=faults, truth=str(truth))) as daemon:
        daemon.wait_for_state("dry")
        start_s = json.loads(truth.read_text())["start_mono_ns"] / 1e9
        for fault, (row, kind, reason, limit_s) in zip(faults, TROUBLES):
            began_s = start_s + fault["at"]
            told_s = daemon.wait_for_unknown(reason, since_s=began_s, timeout_s=40)
            back_s = daemon.wait_for_state("dry", since_s=began_s + LASTS_S)
            fault_row(
                row,
                WORDS.get(kind, f"{kind} pictures"),
                reason=reason,
                detect_s=told_s - began_s,
                detect_limit_s=limit_s,
                recover_s=back_s - (began_s + LASTS_S),
                recover_limit_s=3.0,
                how="scripted camera",
            )
            if reason not in ("frozen", "frame_size"):  # one begins with good frames, one ends with them
                claims = states_claimed(daemon, began_s, began_s + LASTS_S)
                assert not claims, (fault, claims)
        assert daemon.stop() == 0


def states_claimed(daemon: Daemon, from_s: float, to_s: float) -> list[RoadState]:
    """States whose frame was taken in this time."""
    states = [m for m in daemon.messages if m.state != "unknown"]
    return [m for m in states if from_s <= (m.captured_mono_ns or 0) / 1e9 < to_s - 0.1]


@retried_on_a_busy_machine
def test_a_camera_that_hangs_is_cut_off_with_its_process(tmp_path: Path, fault_row: FaultRow) -> None:
    faults = [{"kind": "hang", "at": 2.0, "seconds": 3.0}]
    truth = tmp_path / "truth.json"
    vehicle = pattern_vehicle(faults=faults, truth=str(truth), worker={"stall_s": 0.5})
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        daemon.wait_for_state("dry")
        first_worker = daemon.worker_pid()
        began_s = json.loads(truth.read_text())["start_mono_ns"] / 1e9 + 2.0
        told_s = daemon.wait_for_unknown("no_frames", since_s=began_s)
        daemon.wait_for_unknown("worker_died", since_s=told_s)
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        fault_row(
            2,
            "a call to the camera does not return",
            reason="no_frames",
            detect_s=told_s - began_s,
            detect_limit_s=0.6,
            recover_s=back_s - told_s,
            recover_limit_s=10.0,
            how="scripted camera; the worker ends itself and is replaced",
        )
        assert daemon.worker_pid() != first_worker
        assert daemon.stop() == 0


@retried_on_a_busy_machine
def test_a_killed_worker_is_told_at_once_and_replaced(tmp_path: Path, fault_row: FaultRow) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        killed_s = time.monotonic()
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        told_s = daemon.wait_for_unknown("worker_died", since_s=killed_s)
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        fault_row(
            22,
            "the worker is killed",
            reason="worker_died",
            detect_s=told_s - killed_s,
            detect_limit_s=0.5,
            recover_s=back_s - told_s,
            recover_limit_s=10.0,
            how="SIGKILL, as the kernel does without memory",
        )
        assert daemon.stop() == 0
    assert [m.seq for m in daemon.messages] == list(range(len(daemon.messages)))


@retried_on_a_busy_machine
def test_a_stopped_worker_is_an_inference_that_stalls_and_is_replaced(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        stopped_s = time.monotonic()
        os.kill(daemon.worker_pid(), signal.SIGSTOP)
        told_s = daemon.wait_for_unknown("inference_stalled", since_s=stopped_s)
        back_s = daemon.wait_for_state("dry", since_s=told_s)
        fault_row(
            21,
            "the worker stands still",
            reason="inference_stalled",
            detect_s=told_s - stopped_s,
            detect_limit_s=1.0,
            recover_s=back_s - stopped_s,
            recover_limit_s=10.0,
            how="SIGSTOP",
        )
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
    wait_until(lambda: not Path(f"/proc/{worker}").exists())


def test_a_worker_that_takes_too_much_memory_is_ended_and_the_daemon_is_not(
    tmp_path: Path, fault_row: FaultRow
) -> None:
    """256 MB of address space do not even hold the libraries."""
    with Daemon(tmp_path, vehicle=pattern_vehicle(worker={"memory_mb": 256})) as daemon:
        told_s = daemon.wait_for_unknown("worker_died")
        newest = daemon.messages[-1].seq
        daemon.wait_for(lambda m: m.seq >= newest + 4, since_s=told_s)
        assert {m.state for m in daemon.messages} == {"unknown"}
        assert daemon.stop() == 0
    fault_row(
        22, "256 MB of address space", reason="worker_died", how="RLIMIT_AS", note="the heartbeat goes on"
    )


def test_a_second_daemon_is_refused_with_the_owner_named(tmp_path: Path, fault_row: FaultRow) -> None:
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
        back_s = after_a_kill.wait_for_state("dry") - after_a_kill.began_s
        assert after_a_kill.stop() == 0
    fault_row(
        31, "a second daemon; then the first is killed and its lock stays behind", state="unchanged",
        recover_s=back_s, recover_limit_s=20.0, how="SIGKILL",
        note="the second ends with code 2 and names the process; the next one starts",
    )  # fmt: skip


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


@retried_on_a_busy_machine
def test_a_reader_that_stands_still_cannot_hold_up_the_end(tmp_path: Path) -> None:
    process = start_plainly(tmp_path)
    try:
        wait_until((tmp_path / "runs" / ".locks" / "test.lock").exists)  # it answers signals from here on
        time.sleep(3)  # far more than the pipe can hold
        began_s = time.monotonic()
        process.terminate()
        assert process.wait(30) == 0
        assert time.monotonic() - began_s <= 3.0 * crowding()
    finally:
        process.kill()
        process.wait()


def test_a_reader_that_leaves_ends_the_daemon_quietly(tmp_path: Path) -> None:
    process = start_plainly(tmp_path)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


@retried_on_a_busy_machine
def test_a_folder_of_pictures_may_vanish_and_return(tmp_path: Path, fault_row: FaultRow) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(20):
        grain = np.random.default_rng(number).integers(50, 70, (64, 96, 1))
        grain += np.linspace(-8, 8, 64).astype(int)[:, None, None]
        assert cv2.imwrite(str(folder / f"{number:02d}.png"), np.repeat(grain.astype(np.uint8), 3, axis=2))
    source = {"kind": "images", "path": str(folder), "fps": 20, "loop": True}
    with Daemon(tmp_path, vehicle={"backend": "fake", "source": source}) as daemon:
        daemon.wait_for_state("dry")
        shutil.move(folder, tmp_path / "away")
        gone_s = time.monotonic()
        told_s = daemon.wait_for_unknown("no_frames", since_s=gone_s)
        shutil.move(tmp_path / "away", folder)
        returned_s = time.monotonic()
        fault_row(
            1,
            "the folder of pictures vanishes",
            reason="no_frames",
            detect_s=told_s - gone_s,
            detect_limit_s=1.0,
            recover_s=daemon.wait_for_state("dry", since_s=returned_s) - returned_s,
            recover_limit_s=3.0,
            how="the folder is moved away and back",
        )
        assert daemon.stop() == 0
