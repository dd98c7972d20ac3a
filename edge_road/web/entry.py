"""The door of the web server: asks the guard first, and puts safe headers on every answer."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from edge_road.web.guard import Guard, Refusal

PAGES = ("/", "/index.html", "/setup.html")
SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_EXTRA = [(name.encode(), value.encode()) for name, value in SAFE_HEADERS.items()]


class Guarded:
    """A refused request reaches nothing."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        method, path = scope["method"], scope["path"]
        refusal = self._guard.refusal(method, path, Headers(scope=scope), client_of(scope))
        answer = self._app if refusal is None else _refused(refusal, method, path)
        await answer(scope, receive, _safely(send))
        return None


def client_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def refused(refusal: Refusal) -> Response:
    wait = {"Retry-After": str(refusal.wait_s)} if refusal.wait_s else None
    return PlainTextResponse(refusal.what, refusal.status, wait)


def _refused(refusal: Refusal, method: str, path: str) -> Response:
    """Who opens a page without a session is shown where to get one."""
    if refusal.status == 401 and method == "GET" and path in PAGES:
        return RedirectResponse("/login.html", 303)
    return refused(refusal)


def _safely(send: Send) -> Send:
    async def with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_EXTRA]}
        await send(message)

    return with_headers
