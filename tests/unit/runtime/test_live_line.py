from __future__ import annotations

import io
import re

from edge_road.clock import ScriptedClock
from edge_road.road_state import RoadState
from edge_road.runtime.live_line import LiveLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def message(captured_ns: int | None, state: str = "icy") -> RoadState:
    seen = captured_ns is not None
    return RoadState.model_validate(
        {
            "vehicle": "van",
            "boot_id": "b",
            "seq": 0,
            "state": state,
            "probabilities": {"dry": 0.01, "wet": 0.02, "icy": 0.97} if seen else {},
            "reasons": () if seen else ("no_frames",),
            "published_mono_ns": 10**12,
            "captured_mono_ns": captured_ns,
            "captured_utc": None,
            "clock_synced": True,
            "age_ms": 34.2 if seen else None,
            "valid_for_ms": 1000,
            "dropped": 2,
            "model_digest": "m",
            "config_digest": "c",
            "version": "0",
        }
    )


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*[mK]", "", text).split("\r")[-1].strip()


def test_a_terminal_sees_state_confidence_age_and_rate() -> None:
    terminal, clock = Terminal(), ScriptedClock(mono_ns=10**9)
    live = LiveLine(terminal, clock)
    for number in range(100):
        clock.sleep(0.05)
        live.show(message(number))
    live.close()
    assert re.fullmatch(r"icy +97%  age +34 ms  (19|20)\.\d fps  dropped 2", plain(terminal.getvalue()))


def test_heartbeats_without_a_new_frame_do_not_count_as_frames() -> None:
    terminal, clock = Terminal(), ScriptedClock(mono_ns=10**9)
    live = LiveLine(terminal, clock)
    for _ in range(20):
        clock.sleep(0.5)
        live.show(message(None, "unknown"))
    assert re.fullmatch(r"unknown +0\.0 fps  dropped 2  no_frames", plain(terminal.getvalue()))


def test_nobody_watching_means_not_a_byte() -> None:
    stream = io.StringIO()
    live = LiveLine(stream, ScriptedClock())
    live.show(message(1))
    live.close()
    assert stream.getvalue() == ""
