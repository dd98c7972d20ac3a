"""The soak in twenty seconds; `python tests/soak/soaking.py` is the long form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from daemon_harness import crowding

sys.path.insert(0, str(Path(__file__).parent))
from soaking import soak


@pytest.mark.slow
def test_twenty_seconds_of_flapping_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    done = soak(tmp_path, seconds=20, flap_s=5.0, kill_s=5.0)
    assert done.exit_code == 0
    assert done.worker_kills >= 1
    assert done.broker_kills >= 2
    assert done.missing == {}
    assert done.seqs_in_a_row
    assert done.states <= {"dry", "unknown"}, "a state that the road never had"
    assert done.longest_silence_s <= 1.25 * crowding()
    settled, last = done.samples[len(done.samples) // 2], done.samples[-1]
    assert last.descriptors <= settled.descriptors + 4
    assert last.threads <= settled.threads + 1
    assert max(sample.rss_mb for sample in done.samples) <= 70.0
