"""What a page that is opened late has missed: ten minutes of states, the last events and their pictures."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from edge_road.clock import Clock
from edge_road.conditions import STATES
from edge_road.road_state import RoadState

SPAN_S = 600.0
EVERY_S, SHORTEST_S = 1.0, 0.25
"""between two samples of one state, and of any"""
MOST_EVENTS = 50
MOST_PICTURES = 24
MOST_PICTURE_BYTES = 4 * 2**20

Shares = list[float] | None


class History:
    """Filled by the thread that publishes, read by the one that serves."""

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._samples: deque[tuple[int, str, Shares]] = deque(maxlen=round(SPAN_S / SHORTEST_S))
        self._lock = threading.Lock()

    def add(self, message: RoadState) -> None:
        now_ns = self._machine.mono_ns()
        with self._lock:
            if self._samples:
                last_ns, last_state, _ = self._samples[-1]
                least_s = EVERY_S if message.state == last_state else SHORTEST_S
                if now_ns - last_ns < least_s * 1e9:
                    return
            self._samples.append((now_ns, message.state, _shares(message)))

    def samples(self) -> list[tuple[float, str, Shares]]:
        """Seconds ago, state and probabilities in the order of the states; oldest first."""
        now_ns = self._machine.mono_ns()
        with self._lock:
            samples = list(self._samples)
        ages = [(round((now_ns - at_ns) / 1e9, 2), state, shares) for at_ns, state, shares in samples]
        return [sample for sample in ages if sample[0] <= SPAN_S]


def _shares(message: RoadState) -> Shares:
    shares = message.probabilities
    return [round(shares[state], 3) for state in STATES] if len(shares) == len(STATES) else None


class Album:
    """The last events; with those of the road and of faults goes what the camera saw, if that may be seen."""

    def __init__(self, newest_picture: Callable[[], bytes | None]) -> None:
        self._newest_picture = newest_picture
        self._pictures: OrderedDict[int, bytes] = OrderedDict()
        self._events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._count = 0

    def keep(self, line: str) -> dict[str, Any]:
        """The event as a list of events shows it."""
        event = _for_people(json.loads(line))
        picture = self._newest_picture() if event["kind"] in ("state", "fault_begin") else None
        if picture is not None:
            self._count += 1
            self._pictures[self._count] = picture
            event["picture"] = self._count
        self._events.append(event)
        while len(self._pictures) > MOST_PICTURES or self._bytes() > MOST_PICTURE_BYTES:
            self._pictures.popitem(last=False)
        return event

    def picture(self, number: int) -> bytes | None:
        return self._pictures.get(number)

    def events(self) -> list[dict[str, Any]]:
        """Oldest first; a picture that is gone is not named."""
        return [
            {**event, "picture": event["picture"] if event.get("picture") in self._pictures else None}
            for event in self._events
        ]

    def _bytes(self) -> int:
        return sum(map(len, self._pictures.values()))


def _for_people(event: dict[str, Any]) -> dict[str, Any]:
    """With what a list of events shows at its top level."""
    details = event["details"]
    text = ", ".join(str(details[key]) for key in ("fault", "reason", "error") if key in details)
    shown = {"at": event["utc"], "text": text or None}
    return {**event, **shown, **{key: details[key] for key in ("state", "reasons") if key in details}}
