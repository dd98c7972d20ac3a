"""A whole daemon hears its position from gpsd, and keeps the frames where the road changes."""

from __future__ import annotations

import json
import time
from pathlib import Path

from daemon_harness import Daemon, pattern_vehicle
from fake_gpsd import FIX, WATCHING, FakeGpsd


def test_position_is_in_the_messages_and_changed_frames_are_kept(tmp_path: Path) -> None:
    server = FakeGpsd(WATCHING, FIX)
    vehicle = pattern_vehicle(
        *[("dry", 2.0), ("wet", 2.0)] * 60,
        gpsd={"port": server.port},
        keep={"folder": str(tmp_path / "kept"), "every_s": 0.0, "position": True},
    )
    with Daemon(tmp_path, vehicle=vehicle) as daemon:
        _, located = daemon.wait_for(lambda m: m.position is not None and m.state != "unknown", timeout_s=90)
        end_s = time.monotonic() + 90
        while not any('"latitude": 60.169856' in text for text in notes(tmp_path / "kept")):
            assert time.monotonic() < end_s, notes(tmp_path / "kept")
            time.sleep(0.1)
        assert daemon.stop() == 0
    server.close()
    assert located.position is not None
    assert (located.position.longitude, located.speed_mps) == (24.938379, 13.911)
    reasons = {json.loads(text)["reason"] for text in notes(tmp_path / "kept")}
    assert "changed" in reasons


def notes(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("*.json"))]
