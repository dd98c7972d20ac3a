"""One line on the terminal that always tells the newest state."""

from __future__ import annotations

from typing import TextIO

from edge_road.clock import Clock
from edge_road.road_state import RoadState

CLEAR = "\r\x1b[2K"
COLOR = {"dry": "\x1b[32m", "wet": "\x1b[34m", "icy": "\x1b[31;1m", "unknown": "\x1b[33m"}
RESET = "\x1b[0m"
EVERY_S = 0.2


class LiveLine:
    """Silent where nobody watches."""

    def __init__(self, stream: TextIO, machine: Clock) -> None:
        self._stream, self._machine = stream, machine
        self._active = stream.isatty()
        self._drawn_ns = 0
        self._frames = 0
        self._last_frame_ns: int | None = None
        self._fps = 0.0

    def show(self, message: RoadState) -> None:
        if not self._active:
            return
        self._frames += message.captured_mono_ns not in (None, self._last_frame_ns)
        self._last_frame_ns = message.captured_mono_ns
        elapsed_s = (self._machine.mono_ns() - self._drawn_ns) / 1e9
        if elapsed_s < EVERY_S:
            return
        # Smoothed over about a second, so that the figure can be read.
        self._fps += 0.2 * (self._frames / elapsed_s - self._fps)
        self._frames, self._drawn_ns = 0, self._machine.mono_ns()
        self._stream.write(CLEAR + line_for(message, self._fps))
        self._stream.flush()

    def close(self) -> None:
        if self._active:
            self._stream.write("\n")


def line_for(message: RoadState, fps: float) -> str:
    parts = [f"{COLOR[message.state]}{message.state:<8}{RESET}"]
    if message.state in message.probabilities:
        parts.append(f"{message.probabilities[message.state]:4.0%}")
    if message.age_ms is not None:
        parts.append(f"age {message.age_ms:4.0f} ms")
    parts += [f"{fps:4.1f} fps", f"dropped {message.dropped}", ", ".join(message.reasons)]
    return "  ".join(parts).rstrip()
