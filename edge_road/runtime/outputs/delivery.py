"""Which events go out next and what counts as delivered. Pure: no socket, no clock of its own."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from edge_road.errors import EdgeRoadError
from edge_road.runtime.events.eviction import Entry

LARGEST_ACK_BYTES = 1024


@dataclass(frozen=True)
class BackendAck:
    """The backend has every event of this boot up to `up_to_seq`."""

    boot_id: str
    up_to_seq: int


def parse_ack(payload: bytes) -> BackendAck:
    """Strict: what comes from the network is small, flat and exactly this."""
    try:
        if len(payload) > LARGEST_ACK_BYTES:
            raise ValueError("too large")
        values = json.loads(payload)
        if not isinstance(values, dict) or set(values) != {"boot_id", "up_to_seq"}:
            raise ValueError("expected boot_id and up_to_seq")
        boot_id, seq = values["boot_id"], values["up_to_seq"]
        if not isinstance(boot_id, str) or not 0 < len(boot_id) <= 64:
            raise ValueError("boot_id")
        if type(seq) is not int or not 0 <= seq < 2**53:
            raise ValueError("up_to_seq")
        return BackendAck(boot_id, seq)
    except (ValueError, RecursionError) as error:
        raise EdgeRoadError("not an acknowledgement", got=str(error)[:100]) from None


class Delivery:
    """Reads the outbox from the front again after every loss of the connection: at least once, in order."""

    def __init__(self, window: int, per_s: float, resend_s: float) -> None:
        self._window, self._per_s, self._resend_ns = window, per_s, round(resend_s * 1e9)
        self._in_flight: dict[int, int] = {}
        self._credit, self._credited_ns = float(window), 0
        self._progress_ns = 0
        self.cursor = 0
        """the newest entry that was sent on this connection"""

    def room(self, now_ns: int) -> int:
        """How many more may be sent now."""
        elapsed_s = max(0, now_ns - self._credited_ns) / 1e9
        self._credit = min(float(self._window), self._credit + elapsed_s * self._per_s)
        self._credited_ns = now_ns
        return max(0, min(self._window - len(self._in_flight), math.floor(self._credit)))

    def sent(self, message_id: int, entry: Entry) -> None:
        self._in_flight[message_id] = entry.id
        self._credit -= 1
        self.cursor = max(self.cursor, entry.id)

    def broker_has(self, message_id: int) -> int | None:
        return self._in_flight.pop(message_id, None)

    def progressed(self, now_ns: int) -> None:
        self._progress_ns = now_ns

    def resend_if_stuck(self, waiting: Sequence[Entry], now_ns: int) -> bool:
        """Everything was sent, nothing is acknowledged, and that for long: begin at the front again."""
        if waiting or not self.cursor or now_ns - self._progress_ns < self._resend_ns:
            return False
        self.cursor, self._progress_ns = 0, now_ns
        return True

    @property
    def idle(self) -> bool:
        return not self._in_flight

    def connection_lost(self) -> None:
        self._in_flight.clear()
        self.cursor = 0
