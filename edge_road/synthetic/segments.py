"""The plan of a drive: which state the road has, and for how long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from edge_road.conditions import STATES
from edge_road.errors import DataError, suggestion


@dataclass(frozen=True)
class Segment:
    state: str
    seconds: float

    def __post_init__(self) -> None:
        if self.state not in STATES:
            fix = suggestion(self.state, STATES)
            raise DataError("no such road state", got=repr(self.state), expected=", ".join(STATES), fix=fix)
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise DataError("a segment lasts longer than 0 s", got=self.seconds)


def begins(segments: Sequence[Segment]) -> list[float]:
    """When each segment begins, and as the last entry when the drive ends."""
    if not segments:
        raise DataError("a drive needs at least one segment")
    times = [0.0]
    for segment in segments:
        times.append(times[-1] + segment.seconds)
    return times
