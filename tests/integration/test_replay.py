"""A drive with faults, recorded by a real daemon, says the same again."""

from __future__ import annotations

from pathlib import Path

import pytest
from daemon_harness import Daemon, pattern_vehicle

from edge_road.errors import ConfigError
from edge_road.runtime.replay import comparable, replay


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


@pytest.mark.parametrize(
    "lines", [[], ["{}"], ["[" * 5000], ['{"vehicle": {}}', '{"say": "x"}'], ["x" * 300_000]]
)
def test_what_is_no_recording_is_refused(lines: list[str]) -> None:
    with pytest.raises(ConfigError, match="recording"):
        replay(lines)
