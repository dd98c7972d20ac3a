"""What every output is: it takes messages at once, sends them in its own time, and tells how it fares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from edge_road.road_state import RoadState


@dataclass(frozen=True)
class OutputHealth:
    name: str
    ok: bool
    detail: str = ""
    lost: int = 0
    """messages that nobody will get"""


class Output(Protocol):
    @property
    def gone(self) -> bool:
        """Nobody can ever read what is written here again."""
        ...

    def start(self) -> None:
        """Called once, after the first message: whatever takes time begins here, in a thread."""
        ...

    def publish(self, message: RoadState, line: str) -> None:
        """Returns at once; `line` is the message as JSON."""
        ...

    def publish_event(self, line: str) -> None:
        """An event that is safely stored. Returns at once."""
        ...

    def health(self) -> OutputHealth: ...

    def close(self, timeout_s: float) -> None: ...
