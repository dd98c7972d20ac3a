"""One vehicle as the fleet page knows it: what may be believed of it now, where it was, what happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from edge_road.client import UNKNOWN, StateReader
from edge_road.fleet.track import Point, Track, point_of

MOST_EVENTS = 20
LONGEST_TEXT = 64


class VehicleView:
    """The client's rules decide; this only remembers."""

    def __init__(self, name: str, now_s: Callable[[], float]) -> None:
        self.name = name
        self._now_s = now_s
        self._reader = StateReader(now_s)
        self._heard_s: float | None = None
        self.refused = 0
        """lines that were damaged, late, repeated or another's"""
        self._here: Point | None = None
        self.track = Track()
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)

    def take_state(self, line: bytes) -> Point | None:
        """The point that is new on the track; none when there is none, or when the line is not believed."""
        if not self._reader.take(line):
            self.refused += 1
            return None
        self._heard_s = self._now_s()
        current = self._reader.current()
        assert current.message is not None
        point = point_of(current.message, current.state)
        return point if point is not None and self.move(point) else None

    def move(self, here: Point) -> bool:
        """True when the track has a new point."""
        self._here = here
        return self.track.add(here)

    def take_event(self, event: dict[str, Any]) -> bool:
        """False when it is one of the last that came before."""
        number = (event["boot_id"], event["seq"])
        if any((old["boot_id"], old["seq"]) == number for old in self.events):
            return False
        self.events.append(event)
        return True

    def silent_s(self) -> float | None:
        """Since the last message that was believed."""
        return None if self._heard_s is None else self._now_s() - self._heard_s

    def row(self) -> dict[str, Any]:
        """What the page shows; every text in it is bounded."""
        current = self._reader.current()
        message = current.message or {}
        silent_s = self.silent_s()
        return {
            "vehicle": self.name,
            "state": current.state,
            "reasons": _words(current.reasons, message),
            "confidence": _share(current.probabilities, current.state),
            "silent_s": None if silent_s is None else round(silent_s, 1),
            "speed_mps": _number(message.get("speed_mps")),
            "position": None if self._here is None else [self._here.latitude, self._here.longitude],
            "points": len(self.track.points),
            "version": str(message.get("version", ""))[:LONGEST_TEXT],
            "refused": self.refused,
        }


def _words(reasons: tuple[str, ...], message: Mapping[str, Any]) -> list[str]:
    """A silent vehicle also says what its last word was, such as `offline`."""
    last = message.get("reasons", ()) if reasons == ("stale",) and message.get("state") == UNKNOWN else ()
    return [str(word)[:LONGEST_TEXT] for word in (*reasons, *last)][:8]


def _share(probabilities: Mapping[str, Any], state: str) -> float | None:
    share = _number(probabilities.get(state)) if isinstance(probabilities, Mapping) else None
    return share if share is not None and 0.0 <= share <= 1.0 else None


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and abs(value) < 1e9 else None
