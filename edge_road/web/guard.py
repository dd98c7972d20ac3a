"""Who may ask the web server for what. No I/O: a request's head in, a refusal or none out.

A page of a stranger must not reach us through the user's own browser (DNS rebinding: the Host is
the stranger's; cross-site requests: the Origin is), and nothing is changed without the token. A
browser shows the token once and then its session's cookie. A cookie is sent whoever wrote the page,
and by pages of other ports of the same host too: a change with it needs exactly our own Origin.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from urllib.parse import urlsplit

from edge_road.clock import Clock, SystemClock
from edge_road.web.sessions import SESSION_S, Attempts, Sessions
from edge_road.web.settings import LOOPBACK, ServerSettings

READING = frozenset({"GET", "HEAD"})
LONGEST_PATH = 256
FOR_EVERYBODY = frozenset(
    {"/login.html", "/login.js", "/forms.js", "/words.js", "/page.css", "/icon.svg", "/session"}
)
"""what it takes to show the token"""


@dataclass(frozen=True)
class Refusal:
    status: int
    what: str
    wait_s: int = 0


@dataclass(frozen=True)
class Rights:
    reads: bool
    changes: bool


class Guard:
    """`headers` have lower-case names; `client` is the address that the request comes from."""

    def __init__(self, settings: ServerSettings, token: str | None, clock: Clock | None = None) -> None:
        own = (settings.host,) if settings.host not in ("0.0.0.0", "::") else ()
        self._names = frozenset(name.lower() for name in (*LOOPBACK, *own, *settings.names))
        self._token = token
        self._is_local = settings.host in LOOPBACK
        self._cookie = f"edge_road_{settings.port}"  # cookies do not tell ports apart
        clock = clock or SystemClock()
        self._sessions, self._attempts = Sessions(clock), Attempts(clock)

    def refusal(self, method: str, path: str, headers: Mapping[str, str], client: str = "") -> Refusal | None:
        if len(path) > LONGEST_PATH:
            return Refusal(414, "the path is too long")
        if host_name(headers.get("host", "")) not in self._names:
            return Refusal(421, "this host name is not served here")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin):
            return Refusal(403, "requests from other sites are refused")
        if method in READING and (path in FOR_EVERYBODY or self._is_open(headers)):
            return None
        if method == "POST" and path == "/login":
            return None
        if "authorization" not in headers and self._has_session(headers):
            return None if method in READING else self._refusal_of_change(headers)
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        return self._refusal_of(shown.strip() if scheme.lower() == "bearer" else None, client)

    def rights(self, headers: Mapping[str, str]) -> Rights:
        has_session = self._has_session(headers)
        return Rights(reads=has_session or self._is_open(headers), changes=has_session)

    def goes_on(self, headers: Mapping[str, str]) -> bool:
        """Whether one who was let in to read may stay: a session ends, a token does not."""
        return "authorization" in headers or self.rights(headers).reads

    def log_in(self, token: str, headers: Mapping[str, str], client: str) -> Refusal | str:
        """The cookie of a new session. A browser that came through TLS gets it for TLS only."""
        if self._token is None:
            return Refusal(409, "no token_file is set")
        refusal = self._refusal_of(token, client)
        if refusal is not None:
            return refusal
        tls = "; Secure" if headers.get("origin", "").startswith("https://") else ""
        return self._cookie_of(self._sessions.open(), SESSION_S) + tls

    def log_out(self, headers: Mapping[str, str]) -> str:
        """The cookie that makes a browser forget."""
        self._sessions.close(self._shown_session(headers))
        return self._cookie_of("", 0)

    def _cookie_of(self, secret: str, seconds: int) -> str:
        return f"{self._cookie}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"

    def _is_open(self, headers: Mapping[str, str]) -> bool:
        """To whoever is on this machine; who comes through a proxy asks for another host."""
        is_here = host_name(headers.get("host", "")) in LOOPBACK
        return self._is_local and (is_here or self._token is None)

    def _is_ours(self, origin: str) -> bool:
        try:
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and (parts.hostname or "") in self._names
        except ValueError:
            return False

    def _refusal_of_change(self, headers: Mapping[str, str]) -> Refusal | None:
        _, _, place = headers.get("origin", "").partition("://")
        is_same = place != "" and place == headers.get("host", "")
        return None if is_same else Refusal(403, "a change needs the Origin of this very page")

    def _has_session(self, headers: Mapping[str, str]) -> bool:
        return self._sessions.knows(self._shown_session(headers))

    def _shown_session(self, headers: Mapping[str, str]) -> str:
        pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self._cookie), "")

    def _refusal_of(self, shown: str | None, client: str) -> Refusal | None:
        if self._token is None:
            return Refusal(401, "this needs a token, and no token_file is set")
        if shown is None:
            return Refusal(401, "this needs the token")
        wait_s = ceil(self._attempts.wait_s(client))
        if wait_s:
            return Refusal(429, "too many wrong tokens", wait_s)
        if hmac.compare_digest(shown.encode(errors="replace"), self._token.encode()):
            return None
        self._attempts.failed(client)
        return Refusal(401, "this is not the token")


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
