"""Who has shown the token: sessions of browsers, in memory; and how often a wrong one may be shown."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections import OrderedDict

from edge_road.clock import Clock

SESSION_S = 12 * 3600
MOST_SESSIONS = 64
AT_ONCE, PAUSE_S = 5, 10.0
"""wrong tokens that one address may show in a row, and then one in every pause"""
ALL_AT_ONCE, ALL_PAUSE_S = 100, 1.0
"""the same for all addresses together"""
MOST_ADDRESSES = 1024


class Sessions:
    """Only digests are kept: who reads our memory cannot take over a session."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends_ns: OrderedDict[bytes, int] = OrderedDict()

    def open(self) -> str:
        secret = secrets.token_urlsafe(32)
        self._ends_ns[_digest(secret)] = self._clock.mono_ns() + round(SESSION_S * 1e9)
        if len(self._ends_ns) > MOST_SESSIONS:
            self._ends_ns.popitem(last=False)
        return secret

    def knows(self, secret: str) -> bool:
        return self._clock.mono_ns() < self._ends_ns.get(_digest(secret), 0)

    def close(self, secret: str) -> None:
        self._ends_ns.pop(_digest(secret), None)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


class Attempts:
    """Every wrong token moves a mark one pause into the future; too far ahead, and one has to wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._marks_ns: OrderedDict[str, int] = OrderedDict()
        self._mark_of_all_ns = 0

    def wait_s(self, address: str) -> float:
        """Until the next try; 0: now."""
        own_s = self._ahead_s(self._marks_ns.get(_group(address), 0)) - (AT_ONCE - 1) * PAUSE_S
        all_s = self._ahead_s(self._mark_of_all_ns) - (ALL_AT_ONCE - 1) * ALL_PAUSE_S
        return max(0.0, own_s, all_s)

    def failed(self, address: str) -> None:
        group, now_ns = _group(address), self._clock.mono_ns()
        self._marks_ns[group] = max(self._marks_ns.pop(group, 0), now_ns) + round(PAUSE_S * 1e9)
        self._mark_of_all_ns = max(self._mark_of_all_ns, now_ns) + round(ALL_PAUSE_S * 1e9)
        if len(self._marks_ns) > MOST_ADDRESSES:
            self._marks_ns.popitem(last=False)

    def _ahead_s(self, mark_ns: int) -> float:
        return (mark_ns - self._clock.mono_ns()) / 1e9


def _group(address: str) -> str:
    """One house has a whole /64 of IPv6 addresses."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if number.version == 4:
        return str(number)
    mapped = number.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((int(number) >> 64 << 64, 64)))
