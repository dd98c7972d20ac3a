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
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

STATES = ("dry", "wet", "icy")
UNKNOWN = "unknown"
STATE_SCHEMA, EVENT_SCHEMA = "edge_road.state/1", "edge_road.event/1"
LARGEST_BYTES = 64 * 1024
LONGEST_VALID_MS = 60_000
"""the slowest heartbeat gives 2,000: whoever claims far more is damaged, and not believed for hours"""
MOST_BOOTS = 64
MOST_MISSING = 10_000


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
    """Removes repetitions and tells which events are missing without an explanation."""

    def __init__(self) -> None:
        self._seen: dict[str, set[int]] = {}
        self._lost: dict[str, list[tuple[int, int]]] = {}
        self._whole: dict[str, int] = {}
        """by boot: nothing below this number is missing"""
        self.damaged = self.repeated = 0

    def take(self, line: str | bytes) -> Mapping[str, Any] | None:
        """The event when it is whole and new."""
        event = parse(line, EVENT_SCHEMA)
        if event is None or not _is_event(event):
            self.damaged += 1
            return None
        seen = self._seen.setdefault(event["boot_id"], set())
        if event["seq"] in seen:
            self.repeated += 1
            return None
        seen.add(event["seq"])
        if event["kind"] == "gap":
            gap = event["details"]
            self._lost.setdefault(gap["boot_id"], []).append((gap["from"], gap["to"]))
        return event

    @property
    def missing(self) -> dict[str, list[int]]:
        """By boot, the first numbers below the highest seen that neither came nor lie in a declared gap."""
        found = {boot: list(islice(self._holes(boot), MOST_MISSING)) for boot in self._seen}
        return {boot: holes for boot, holes in found.items() if holes}

    def up_to(self, boot_id: str) -> int:
        """The last number with nothing missing before it: what a backend acknowledges; -1: none."""
        highest = max(self._seen.get(boot_id, ()), default=-1)
        self._whole[boot_id] = next(self._holes(boot_id), highest + 1)
        return self._whole[boot_id] - 1

    def _holes(self, boot_id: str) -> Iterator[int]:
        """In order; whole stretches are stepped over, so that one absurd number costs nothing."""
        seen, gaps = self._seen.get(boot_id, set()), self._lost.get(boot_id, [])
        number, highest = self._whole.get(boot_id, 0), max(seen, default=-1)
        while number < highest:
            if number in seen:
                number += 1
            elif (end := max((last for first, last in gaps if first <= number <= last), default=-1)) >= 0:
                number = end + 1
            else:
                yield number
                number += 1


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
