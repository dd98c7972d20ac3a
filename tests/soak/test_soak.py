"""The soak in twenty seconds; `python tests/soak/soaking.py` is the long form."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from soaking import run_apart


@pytest.mark.slow
def test_twenty_seconds_of_trouble_lose_nothing_and_leave_nothing() -> None:
    if shutil.which("mosquitto") is None and not Path("/usr/sbin/mosquitto").exists():
        pytest.skip("mosquitto is not installed")
    done = run_apart(seconds=20, stretch=0.1)
    assert done.broken() == [], done
