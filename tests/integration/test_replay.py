"""A drive with faults, recorded by a real daemon, says the same again."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
import tomli_w
from camera_servers import wait_until
from daemon_harness import Daemon, pattern_vehicle

from edge_road.errors import ConfigError
from edge_road.road_state import parse_message
from edge_road.runtime.recorder import Recorder
from edge_road.runtime.replay import comparable, main, replay
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_digest import vehicle_digest
from edge_road.synthetic.score import score_messages


def test_a_replay_gives_the_same_messages_but_for_their_times(tmp_path: Path) -> None:
    faults = [{"kind": "black", "at": 2.0, "seconds": 0.5}, {"kind": "nan", "at": 4.0, "seconds": 0.5}]
    vehicle = pattern_vehicle(("dry", 3.0), ("icy", 3.0), faults=faults)
    with Daemon(tmp_path, "--record", "drive.jsonl", vehicle=vehicle) as daemon:
        assert daemon.finish() == 0
    lines = (tmp_path / "drive.jsonl").read_text().splitlines()
    again = replay(lines)
    assert [comparable(m) for m in again] == [comparable(m) for m in daemon.messages]
    assert {"icy", "unknown"} <= {m.state for m in again}
    assert [m.to_json() for m in replay(lines)] == [m.to_json() for m in again]


def test_a_replay_is_scored_by_the_states_of_a_rendered_drive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording, truth = tmp_path / "drive.jsonl", tmp_path / "truth.json"
    vehicle = pattern_vehicle(("dry", 3.0), ("icy", 3.0), truth=str(truth))
    with Daemon(tmp_path, "--record", recording.name, vehicle=vehicle) as daemon:
        assert daemon.finish() == 0
    assert main([str(recording), "--truth", str(truth)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == len(daemon.messages)
    score = score_messages([parse_message(line) for line in out.splitlines()], truth)
    assert f"drive        {score.right_share:.1%} of the seconds right" in err
    assert f"ice          {score.of_ice}" in err


def test_what_the_vehicle_tells_is_in_the_messages_and_in_the_replay(tmp_path: Path) -> None:
    door = tmp_path / "s"
    outputs = [{"path": "-"}, {"kind": "unix_socket", "path": str(door), "inputs": True}]
    vehicle = pattern_vehicle(outputs=outputs)
    with Daemon(tmp_path, "--record", "drive.jsonl", vehicle=vehicle) as daemon:
        daemon.wait_for_state("dry")
        with socket.socket(socket.AF_UNIX) as teller:
            teller.connect(str(door))
            teller.sendall(b'nonsense\n{"speed_mps": 13.9, "ambient_c": -3}\n')
            daemon.wait_for(lambda m: m.speed_mps == 13.9)
            assert daemon.stop() == 0
    again = replay((tmp_path / "drive.jsonl").read_text().splitlines())
    assert [comparable(m) for m in again] == [comparable(m) for m in daemon.messages]
    assert daemon.stderr.count("a vehicle input is ignored") == 1


def test_a_recording_ends_where_new_settings_were_taken(tmp_path: Path) -> None:
    vehicle = pattern_vehicle()
    with Daemon(tmp_path, "--record", "drive.jsonl", vehicle=vehicle) as daemon:
        daemon.wait_for_state("dry")
        daemon.process.send_signal(signal.SIGUSR1)  # the same settings again end nothing
        wait_until(lambda: "read again" in daemon.stderr)
        first = daemon.messages[-1]
        daemon.wait_for(lambda m: m.seq > first.seq + 5)
        (tmp_path / "vehicle.toml").write_text(tomli_w.dumps({**vehicle, "heartbeat_hz": 4.0}))
        daemon.process.send_signal(signal.SIGUSR1)
        daemon.wait_for(lambda m: m.config_digest != first.config_digest)
        assert daemon.stop() == 0
    again = replay((tmp_path / "drive.jsonl").read_text().splitlines())
    before = [m for m in daemon.messages if m.config_digest == first.config_digest]
    assert before[-1].seq > first.seq
    assert [comparable(m) for m in again] == [comparable(m) for m in before]


def test_a_file_holds_one_recording(tmp_path: Path) -> None:
    path = tmp_path / "drive.jsonl"
    path.touch()
    recorder = Recorder(path, Vehicle())
    recorder.record({"outage": "starting"})
    recorder.close()
    with pytest.raises(ConfigError, match="a recording in this file already"):
        Recorder(path, Vehicle())
    assert replay(path.read_text().splitlines()) == []


@pytest.mark.parametrize(
    "url",
    ["rtsp://user:hunter2@10.0.0.5/stream", "rtsp://10.0.0.5/user=admin_password=hunter2_channel=1.sdp"],
)
def test_a_recording_holds_no_password_and_gives_the_same_digest(tmp_path: Path, url: str) -> None:
    """It is made to be handed on; nor can the password be guessed from the digest in the messages."""
    path = tmp_path / "drive.jsonl"
    vehicle = Vehicle.model_validate({"source": {"kind": "rtsp", "url": url}})
    recorder = Recorder(path, vehicle)
    recorder.record({"mono_ns": 1, "say": True})
    recorder.close()
    assert "hunter2" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    (message,) = replay(path.read_text().splitlines())
    assert message.config_digest == vehicle_digest(vehicle)
    other = Vehicle.model_validate({"source": {"kind": "rtsp", "url": url.replace("hunter2", "hunter3")}})
    assert vehicle_digest(other) == vehicle_digest(vehicle)


def test_a_torn_last_line_costs_no_more_than_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "drive.jsonl"
    recorder = Recorder(path, Vehicle())
    recorder.record({"mono_ns": 1, "say": True})
    recorder.close()
    whole = path.read_text()
    path.write_text(whole + '{"mono_ns": 2, "sa')
    assert main([str(path)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert "torn line" in err


@pytest.mark.parametrize(
    "lines", [[], ["{}"], ["[" * 5000], ['{"vehicle": {}}', '{"say": "x"}'], ["x" * 300_000]]
)
def test_what_is_no_recording_is_refused(lines: list[str]) -> None:
    with pytest.raises(ConfigError, match="recording"):
        replay(lines)
