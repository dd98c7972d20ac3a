"""Who may ask the web server for what. Pure: a request's head in, a refusal or none out.

A page of a stranger must not reach us through the user's own browser (DNS rebinding: the Host is
the stranger's; cross-site requests: the Origin is), and nothing is changed without the token.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from edge_road.runtime.vehicle_outputs import LOOPBACK, HttpOutput

READING = frozenset({"GET", "HEAD"})
LONGEST_PATH = 256


@dataclass(frozen=True)
class Refusal:
    status: int
    what: str


class Guard:
    def __init__(self, settings: HttpOutput, token: str | None) -> None:
        own = (settings.host,) if settings.host not in ("0.0.0.0", "::") else ()
        self._names = frozenset(name.lower() for name in (*LOOPBACK, *own, *settings.names))
        self._token = token
        self._open_to_readers = settings.host in LOOPBACK

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """`headers` with lower-case names."""
        if len(path) > LONGEST_PATH:
            return Refusal(414, "the path is too long")
        if host_name(headers.get("host", "")) not in self._names:
            return Refusal(421, "this host name is not served here")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin):
            return Refusal(403, "requests from other sites are refused")
        if method in READING and self._open_to_readers:
            return None
        return None if self._shows_token(headers) else Refusal(401, "this needs the token")

    def _is_ours(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and (parts.hostname or "") in self._names
        except ValueError:
            return False

    def _shows_token(self, headers: Mapping[str, str]) -> bool:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if self._token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(shown.strip().encode(), self._token.encode())


def host_name(host: str) -> str:
    """`[::1]:8770` -> `::1`; whatever is odd becomes a name that nobody has."""
    name, bracket, rest = host.partition("]")
    if bracket:
        is_odd = not name.startswith("[") or (rest and not _is_port(rest))
        return "" if is_odd else name[1:].lower()
    name, colon, port = host.partition(":")
    return "" if (colon and not port.isascii()) or (colon and not port.isdigit()) else name.lower()


def _is_port(rest: str) -> bool:
    return rest.startswith(":") and rest[1:].isascii() and rest[1:].isdigit()
