"""For consumers: turns the stream of messages into a state that can be trusted, or into `unknown`.

Only the standard library is used, so that this one file can be copied into another program.

    reader = StateReader()
    for line in stream:            # a unix socket, MQTT payloads, lines of a file
        reader.take(line)
        print(reader.current())    # and again at any later time: age makes it `unknown` by itself

    events = EventReader()
    for line in backlog:
        if event := events.take(line):
            store(event)           # each one once, however often it was sent
    print(events.missing)          # numbers that neither came nor were declared lost
"""

from __future__ import annotations

import json
import time
import zlib
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

STATES = ("dry", "wet", "icy")
UNKNOWN = "unknown"
STATE_SCHEMA, EVENT_SCHEMA = "edge_road.state/1", "edge_road.event/1"
LARGEST_BYTES = 64 * 1024
LONGEST_VALID_MS = 60_000
"""the slowest heartbeat gives 2,000: whoever claims far more is damaged, and not believed for hours"""
MOST_BOOTS = 64
MOST_MISSING = 10_000
MOST_STARTS = 10_000
"""of daemons, whose events are told apart from repetitions"""


@dataclass(frozen=True)
class Current:
    """What may be acted upon now."""

    state: str
    reasons: tuple[str, ...]
    probabilities: Mapping[str, float] = field(default_factory=dict)
    message: Mapping[str, Any] | None = None


class StateReader:
    """One vehicle's states. Nothing it is given makes it raise, and nothing damaged makes it believe."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._message: Mapping[str, Any] | None = None
        self._seq = -1
        """the highest number of this start"""
        self._received_s = 0.0
        self._old_boots: OrderedDict[str, None] = OrderedDict()
        self.damaged = self.repeated = self.skipped = 0

    def take(self, line: str | bytes) -> bool:
        """True when it is the newest message; false when it is damaged, foreign or older than one before."""
        message = parse(line, STATE_SCHEMA)
        if message is None or not _is_state(message):
            self.damaged += 1
            return False
        if not self._is_newer(message):
            self.repeated += 1
            return False
        self._message, self._received_s = message, self._now_s()
        return True

    def current(self) -> Current:
        message = self._message
        if message is None:
            return Current(UNKNOWN, ("no_message",))
        since_s = self._now_s() - self._received_s
        if not 0 <= since_s * 1000 <= message["valid_for_ms"]:
            return Current(UNKNOWN, ("stale",), message=message)
        return Current(message["state"], tuple(message["reasons"]), message["probabilities"], message)

    def _is_newer(self, message: Mapping[str, Any]) -> bool:
        """A number higher than all before; a new start of the daemon counts from the beginning."""
        last, boot, seq = self._message, message["boot_id"], message["seq"]
        if last is not None and boot == last["boot_id"]:
            if _is_last_will(message):
                return True  # its number is from the time of the connection, and says nothing
            self.skipped += max(0, seq - self._seq - 1)
            if seq <= self._seq:
                return False
        elif last is not None:
            if boot in self._old_boots:
                return False  # a late message of a daemon that has been replaced
            self._old_boots[last["boot_id"]] = None
            while len(self._old_boots) > MOST_BOOTS:
                self._old_boots.popitem(last=False)
        self._seq = seq
        return True


class EventReader:
    """Of any vehicles: removes repetitions, and tells which events are missing without an explanation."""

    def __init__(self) -> None:
        self._starts: OrderedDict[str, _Start] = OrderedDict()
        self.damaged = self.repeated = 0

    def take(self, line: str | bytes) -> Mapping[str, Any] | None:
        """The event when it is whole and new."""
        event = parse(line, EVENT_SCHEMA)
        if event is None or not _is_event(event):
            self.damaged += 1
            return None
        seen, known = self._start(event["boot_id"])
        if event["seq"] in seen:
            self.repeated += 1
            return None
        for numbers in (seen, known):
            numbers.add(event["seq"], event["seq"])
        if event["kind"] == "gap":
            gap = event["details"]
            self._start(gap["boot_id"]).known.add(gap["from"], gap["to"])
        return event

    @property
    def missing(self) -> dict[str, list[int]]:
        """By boot, the first numbers below the highest seen that neither came nor lie in a declared gap."""
        found = {boot: list(islice(start.holes(), MOST_MISSING)) for boot, start in self._starts.items()}
        return {boot: holes for boot, holes in found.items() if holes}

    def up_to(self, boot_id: str) -> int:
        """The last number with nothing missing before it: what a backend acknowledges; -1: none."""
        start = self._starts.get(boot_id)
        return -1 if start is None else next(start.holes(), start.seen.end) - 1

    def _start(self, boot_id: str) -> _Start:
        """Of one start of a daemon; the one that was not heard of for longest makes room."""
        start = self._starts.pop(boot_id, None) or _Start(_Stretches(), _Stretches())
        self._starts[boot_id] = start
        while len(self._starts) > MOST_STARTS:
            self._starts.popitem(last=False)
        return start


class _Stretches:
    """Whole numbers without end: what has no holes is one stretch, however long."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._first, number)
        return at > 0 and number <= self._last[at - 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._first, self._last)

    @property
    def end(self) -> int:
        """One above the highest."""
        return self._last[-1] + 1 if self._last else 0

    def add(self, first: int, last: int) -> None:
        """Joined with every stretch that it touches."""
        if first > last:
            return
        begin, end = bisect_left(self._last, first - 1), bisect_right(self._first, last + 1)
        if begin < end:
            first, last = min(first, self._first[begin]), max(last, self._last[end - 1])
        self._first[begin:end], self._last[begin:end] = [first], [last]


class _Start(NamedTuple):
    seen: _Stretches
    known: _Stretches
    """seen, or declared lost"""

    def holes(self) -> Iterator[int]:
        number = 0
        for first, last in self.known:
            yield from range(number, min(first, self.seen.end))
            number = max(number, last + 1)


def parse(line: str | bytes, schema: str) -> dict[str, Any] | None:
    """The message, when its checksum and its schema are right and UTF-8 can hold all of its texts.

    `crc32` covers the rest as it was written.
    """
    try:
        text = line if isinstance(line, str) else line.decode()
        if len(text) > LARGEST_BYTES:
            return None
        values: dict[str, Any] = json.loads(text, parse_constant=_refuse)
        crc = values.pop("crc32")
        body = json.dumps(values, separators=(",", ":"), allow_nan=False)
        if values["schema"] != schema or type(crc) is not int or crc != zlib.crc32(body.encode()):
            return None
        json.dumps(values, ensure_ascii=False).encode()  # fails on half a surrogate pair, as stores would
        return values
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _is_state(message: Mapping[str, Any]) -> bool:
    try:
        state, shares = message["state"], message["probabilities"]
        known = state in (*STATES, UNKNOWN) and type(message["seq"]) is int
        lasting = 0 < message["valid_for_ms"] <= LONGEST_VALID_MS
        evidence = state == UNKNOWN or (
            set(shares) == set(STATES) and message["captured_mono_ns"] is not None
        )
        return bool(
            known
            and lasting
            and evidence
            and isinstance(message["boot_id"], str)
            and list(message["reasons"]) is not None
        )
    except (KeyError, TypeError):
        return False


def _is_last_will(message: Mapping[str, Any]) -> bool:
    """What a broker says in the daemon's name when it vanishes."""
    return bool(message["state"] == UNKNOWN and "offline" in message["reasons"])


def _is_event(event: Mapping[str, Any]) -> bool:
    try:
        whole = isinstance(event["boot_id"], str) and type(event["seq"]) is int and event["seq"] >= 0
        if event["kind"] != "gap":
            return bool(whole)
        gap = event["details"]
        return bool(
            whole and type(gap["from"]) is int and type(gap["to"]) is int and isinstance(gap["boot_id"], str)
        )
    except (KeyError, TypeError):
        return False
