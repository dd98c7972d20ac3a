"""The whole daemon, two processes, from start to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path

import cv2
import numpy as np
import pytest
import tomli_w
from camera_servers import wait_until
from daemon_harness import ROOT, SCRIPT, Daemon, crowding, pattern_vehicle, retried_on_a_busy_machine

from edge_road.backends.fake import LEVEL_OF_STATE
from edge_road.road_state import parse_message
from edge_road.synthetic.score import score_messages


def write_pictures(folder: Path, states: list[str]) -> None:
    folder.mkdir()
    for number, state in enumerate(states):
        grain = np.random.default_rng(number).integers(-10, 11, (64, 96, 1))
        grain += np.linspace(-8, 8, 64).astype(int)[:, None, None]  # light from one side: no mere noise
        picture = np.repeat((grain + LEVEL_OF_STATE[state]).astype(np.uint8), 3, axis=2)
        assert cv2.imwrite(str(folder / f"{number:04d}.png"), picture)


def workers_of(supervisor: int) -> list[Path]:
    """Those that it started, also when it is gone; a process that ends has no command any more."""
    words = b"edge_road.runtime.worker", str(supervisor).encode()
    return [path for path in Path("/proc").glob("[0-9]*") if set(words) <= set(command_of(path))]


def command_of(process: Path) -> list[bytes]:
    try:
        return (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def run_script(folder: Path, *options: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "EDGE_ROAD_HOME": str(folder)},
        timeout=timeout_s,
    )


def test_a_drive_is_told_from_the_first_heartbeat_to_the_last_word(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    vehicle = pattern_vehicle(("dry", 6.0), ("icy", 6.0), ("wet", 6.0), truth=str(truth), speed=3.0)
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        assert daemon.finish() == 0
    messages = daemon.messages
    assert messages[0].reasons == ("starting",)
    assert messages[-1].reasons == ("end_of_stream",)
    assert [m.seq for m in messages] == list(range(len(messages)))
    changes = [m.state for n, m in enumerate(messages) if n == 0 or m.state != messages[n - 1].state]
    assert [state for state in changes if state != "unknown"] == ["dry", "icy", "wet"]
    assert json.loads(truth.read_text())["segments"][1] == {"state": "icy", "seconds": 6.0}


def test_unreadable_pictures_are_named_and_those_after_the_last_frame_are_counted(tmp_path: Path) -> None:
    write_pictures(tmp_path / "drive", ["dry"] * 5)
    for name in ("0000b.png", "9998.png", "9999.png"):
        (tmp_path / "drive" / name).write_bytes(b"")
    done = run_script(tmp_path, "--source", "drive", "--set", "backend=fake")
    assert done.returncode == 0, done.stderr
    for name in ("0000b.png", "9998.png", "9999.png"):
        assert done.stderr.count(f"{name}: an empty file") == 1
    assert "3 pictures unreadable" in done.stderr


@retried_on_a_busy_machine
def test_the_first_heartbeat_comes_within_a_second(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        first_s, message = daemon.wait_for(lambda m: True)
        assert message.state == "unknown"
        assert first_s - daemon.began_s <= 1.0 * crowding()


@retried_on_a_busy_machine
def test_a_blind_daemon_keeps_its_heartbeat(tmp_path: Path) -> None:
    blind = [{"kind": "silence", "at": 1.0, "seconds": 600.0}]
    with Daemon(tmp_path, vehicle=pattern_vehicle(faults=blind)) as daemon:
        began_s = daemon.wait_for_unknown("no_frames", daemon.wait_for_state())
        time.sleep(3.2)
        beats = [at for at, m in daemon.received if at > began_s]
    assert len(beats) == pytest.approx(6, abs=crowding())
    assert max(np.diff(beats)) <= 1.25 * crowding()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
@retried_on_a_busy_machine
def test_a_signal_ends_it_cleanly_within_three_seconds(tmp_path: Path, how: signal.Signals) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_state("dry")
        worker = daemon.worker_pid()
        began_s = time.monotonic()
        assert daemon.stop(how) == 0
        assert time.monotonic() - began_s <= 3.0 * crowding()
    assert daemon.messages[-1].state == "unknown"
    assert daemon.messages[-1].reasons == ("shutdown",)
    assert not Path(f"/proc/{worker}").exists()


def test_a_signal_during_the_start_ends_it_cleanly(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        daemon.wait_for_unknown("starting")
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.stop(signal.SIGTERM) == 0
    assert daemon.messages[-1].reasons == ("shutdown",)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_before_the_first_word_leaves_no_worker_behind(tmp_path: Path, how: signal.Signals) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        wait_until(lambda: bool(workers_of(daemon.process.pid)))
        assert daemon.stop(how) == (-how if how == signal.SIGKILL else 0), daemon.stderr
        wait_until(lambda: not workers_of(daemon.process.pid))
    assert {m.state for m in daemon.messages} <= {"unknown"}


def test_a_wish_for_new_settings_before_the_first_word_is_kept(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle()) as daemon:
        wait_until(lambda: bool(workers_of(daemon.process.pid)))
        daemon.process.send_signal(signal.SIGUSR1)
        daemon.wait_for_state("dry")
        assert "the settings were read again" in daemon.stderr
        assert daemon.stop() == 0


def test_no_picture_of_the_road_is_left_behind(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    picture = folder / "test.jpg"
    outputs = [{"path": "-"}, {"kind": "http", "port": 0, "snapshots": True}]
    environment = {"RUNTIME_DIRECTORY": str(folder)}
    with Daemon(tmp_path, vehicle=pattern_vehicle(outputs=outputs), environment=environment) as daemon:
        wait_until(picture.exists)
        assert daemon.stop() == 0
    assert [file.name for file in folder.iterdir()] == ["test.lock"]
    picture.write_bytes(b"of a daemon that was killed")
    with Daemon(tmp_path, vehicle=pattern_vehicle(), environment=environment) as daemon:
        daemon.wait_for_state("dry")
        assert not picture.exists()


def test_settings_that_are_wrong_leave_no_worker_behind(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle(rate=-1)) as daemon:
        assert daemon.finish() == 2
        wait_until(lambda: not workers_of(daemon.process.pid))
    assert not daemon.messages


def test_a_duration_ends_it(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--duration", "1", vehicle=pattern_vehicle()) as daemon:
        assert daemon.finish() == 0
    assert daemon.messages[-1].reasons == ("shutdown",)
    assert any(m.state == "dry" for m in daemon.messages)


def test_a_folder_of_pictures_is_judged_to_its_end(tmp_path: Path) -> None:
    write_pictures(tmp_path / "photos", ["wet"] * 8)
    done = run_script(tmp_path, "--source", "photos", "--set", "backend=fake", "--set", "source.fps=10")
    assert done.returncode == 0, done.stderr
    messages = [parse_message(line) for line in done.stdout.splitlines()]
    assert {m.state for m in messages} == {"wet", "unknown"}


def test_a_video_that_ends_ends_the_daemon(tmp_path: Path, shared_data: Path) -> None:
    video = next((shared_data / "video").glob("udacity*.mp4"))
    done = run_script(
        tmp_path, "--source", str(video), "--set", "backend=fake", "--set", "speed=2", "--messages", "m.jsonl"
    )
    assert done.returncode == 0, done.stderr
    messages = [parse_message(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert messages[-1].reasons == ("end_of_stream",)
    assert len({m.captured_mono_ns for m in messages}) > 100


def test_a_video_can_loop(tmp_path: Path, shared_data: Path) -> None:
    video = next((shared_data / "video").glob("udacity*.mp4"))  # 8.8 s
    options = ["--source", str(video), "--set", "source.loop=true", "--set", "backend=fake"]
    done = run_script(tmp_path, *options, "--set", "speed=3", "--set", "rate=5", "--duration", "12")
    assert done.returncode == 0, done.stderr
    messages = [parse_message(line) for line in done.stdout.splitlines()]
    captured_ns = sorted({m.captured_mono_ns for m in messages if m.captured_mono_ns})
    assert captured_ns[-1] - captured_ns[0] > 10e9


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--source", "empty"], 5, "no readable picture"),
        (["--source", "text.mp4"], 5, "video cannot be opened"),
        (["--source", "nowhere.mp4"], 2, "there is no such source"),
        (["--source", "sinthetic"], 2, "did you mean 'synthetic'?"),
        (["--set", "warn_s=1"], 2, "unknown key 'warn_s'"),
        (["--set", "decision.warm_s=1"], 2, "did you mean 'warn_s'?"),
        (["--vehicle", "vann.toml"], 2, "did you mean 'van.toml'?"),
        (["--vehicle", "van.toml"], 2, "van.toml:3"),
        (["--set", "backend=onnx"], 3, "there is no bundle yet"),
        (["--set", "backend=onnx", "--bundle", "empty"], 3, "a bundle file cannot be read"),
    ],
)
def test_bad_input_has_a_clear_message_and_its_exit_code(
    tmp_path: Path, options: list[str], code: int, text: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "van.toml").write_text('vehicle = "van"\n[source]\nkynd = "video"\n')
    done = run_script(tmp_path, "--set", "backend=fake", *options)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_check_refuses_what_the_daemon_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run_script(tmp_path, "--check", "--set", "backend=fake", "--source", "empty")
    assert done.returncode == 5
    assert "no readable picture" in done.stderr


def test_a_good_vehicle_passes_the_check(tmp_path: Path) -> None:
    options = ["--source", "pattern", "--set", "backend=fake", "--messages", "m.jsonl"]
    done = run_script(tmp_path, "--check", *options)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["vehicle", "model", "source", "output"]


def test_settings_that_fail_cost_no_more_than_an_output_that_cannot_be_opened_again(tmp_path: Path) -> None:
    folder, vehicle = tmp_path / "lines", pattern_vehicle(outputs=[{"path": "-"}])
    with_lines = {**vehicle, "outputs": [{"path": str(folder / "m.jsonl")}, {"path": "-"}]}
    with Daemon(tmp_path, vehicle=with_lines) as daemon:
        daemon.wait_for_state("dry")
        folder.rename(tmp_path / "elsewhere")
        folder.write_text("a file where a folder should be")
        without_camera = {**vehicle, "source": {"kind": "images", "path": str(tmp_path / "missing")}}
        (tmp_path / "vehicle.toml").write_text(tomli_w.dumps(without_camera))
        daemon.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: "the old ones stay" in daemon.stderr)
        daemon.wait_for_state("dry", since_s=time.monotonic())
        assert daemon.stop() == 0
    assert "an output is lost" in daemon.stderr


def test_it_runs_from_any_folder_even_one_full_of_traps(tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 cannot keep the current folder out of the worker's path")
    for name in ("numpy.py", "edge_road.py", "logging.py"):
        (tmp_path / name).write_text("raise SystemExit('trapped')")
    with Daemon(tmp_path, "--duration", "1", vehicle=pattern_vehicle()) as daemon:
        assert daemon.finish() == 0, daemon.stderr


def test_importing_the_runtime_is_quick_and_light() -> None:
    code = (
        "import time; began = time.process_time(); import edge_road.runtime.main, edge_road.runtime.daemon\n"
        "s = time.process_time() - began\n"
        "import sys, json; print(json.dumps([s, sorted(set(sys.modules) & set(sys.argv[1:]))]))"
    )
    heavy = ["torch", "torchvision", "timm", "matplotlib", "cv2", "av", "onnx", "onnxruntime", "numpy"]
    command = [sys.executable, "-c", code, *heavy]
    runs = [json.loads(subprocess.check_output(command, cwd=ROOT, text=True, timeout=60)) for _ in range(3)]
    assert [found for _, found in runs] == [[], [], []]
    assert min(seconds for seconds, _ in runs) < 0.5


@pytest.mark.slow
@retried_on_a_busy_machine
def test_two_minutes_of_road_are_told_with_ice_at_once_and_no_more_changes_than_the_road_has(
    tmp_path: Path,
) -> None:
    truth = tmp_path / "truth.json"
    segments = [("dry", 40.0), ("wet", 28.0), ("icy", 28.0), ("dry", 24.0)]
    vehicle = pattern_vehicle(*segments, fps=10, speed=4.0, truth=str(truth))
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        assert daemon.finish() == 0
    result = score_messages(daemon.messages, truth)
    assert result.right_share >= 0.97
    assert result.longest_wrong_s <= 2.0
    assert result.icy_delay_s <= 1.0
    assert result.false_alarms == 0
    assert [state for state, _ in groupby(m.state for m in daemon.messages)] == [
        "unknown",
        *(state for state, _ in segments),
        "unknown",
    ]
