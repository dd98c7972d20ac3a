"""EDGE_ROAD_FAULT on a whole daemon: the fault happens, is told, and passes."""

from __future__ import annotations

from pathlib import Path

from daemon_harness import Daemon, pattern_vehicle

from edge_road.runtime.replay import comparable, replay


def test_a_rehearsed_crash_is_told_in_every_message_and_happens_once(tmp_path: Path) -> None:
    faults = {"EDGE_ROAD_FAULT": "worker.crash@1-900,camera.black@0-0.001"}
    recording = tmp_path / "drive.jsonl"
    with Daemon(
        tmp_path, "--record", str(recording), vehicle=pattern_vehicle(), environment=faults
    ) as daemon:
        died_s = daemon.wait_for_unknown("worker_died", timeout_s=60)
        daemon.wait_for_state("dry", since_s=died_s, timeout_s=60)
        assert daemon.stop() == 0
    assert all("rehearsal" in message.reasons for message in daemon.messages)
    assert daemon.stderr.count("injected fault: worker.crash") == 1
    assert "faults are injected on purpose: worker.crash@1-900, camera.black@0-0.001" in daemon.stderr
    again = replay(recording.read_text().splitlines())
    assert [comparable(m) for m in again] == [comparable(m) for m in daemon.messages]


def test_a_vehicle_in_production_does_not_start_with_faults(tmp_path: Path) -> None:
    camera = {"kind": "v4l2", "device": "/dev/video77"}
    vehicle = {"production": True, "source": camera, "bundle": str(tmp_path)}
    with Daemon(tmp_path, vehicle=vehicle, environment={"EDGE_ROAD_FAULT": "model.nan@0"}) as daemon:
        assert daemon.finish() == 2
    assert "not injected in production" in daemon.stderr
    assert daemon.messages == []


def test_a_vehicle_in_production_does_not_start_as_a_rehearsal(tmp_path: Path) -> None:
    with Daemon(tmp_path, vehicle=pattern_vehicle(production=True)) as daemon:
        assert daemon.finish() == 2
    assert "not let through in production" in daemon.stderr
    assert "backend = fake, source.kind = pattern" in daemon.stderr
    assert daemon.messages == []
