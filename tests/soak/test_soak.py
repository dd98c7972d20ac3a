"""The soak in twenty seconds; `python tests/soak/soaking.py` is the long form."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from daemon_harness import crowding

sys.path.insert(0, str(Path(__file__).parent))
from soaking import run_apart


@pytest.mark.slow
def test_twenty_seconds_of_trouble_lose_nothing_and_leave_nothing() -> None:
    if shutil.which("mosquitto") is None and not Path("/usr/sbin/mosquitto").exists():
        pytest.skip("mosquitto is not installed")
    done = run_apart(seconds=20, stretch=0.1)
    print(done)
    assert done.exit_code == 0
    assert all(count >= 1 for count in done.troubles.values()), done.troubles
    assert done.missing == {}
    assert done.seqs_in_a_row
    assert set(done.states) <= {"dry", "unknown"}, "a state that the road never had"
    assert "Traceback" not in done.said
    if "disk full" in done.troubles:
        assert done.said == ["kept in memory", "stored again"]
    assert done.longest_silence_s <= 1.25 * crowding()
    settled, last = done.samples[len(done.samples) // 2], done.samples[-1]
    assert last.descriptors <= settled.descriptors + 4
    assert last.threads <= settled.threads + 1
    assert max(sample.rss_mb for sample in done.samples) <= 70.0
