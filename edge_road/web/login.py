"""The token against a session's cookie, for a browser that cannot send headers of its own."""

from __future__ import annotations

import json
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from edge_road.errors import ConfigError
from edge_road.web.entry import client_of, refused
from edge_road.web.guard import Guard, Refusal

LARGEST_BODY_BYTES = 4096
NO_CONTENT = 204


class Login:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def routes(self) -> list[Route]:
        return [
            Route("/session", self.session),
            Route("/login", self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
        ]

    async def session(self, request: Request) -> Response:
        return JSONResponse(asdict(self._guard.rights(request.headers)))

    async def log_in(self, request: Request) -> Response:
        try:
            token = _token(await read_body(request))
        except ConfigError as error:
            return PlainTextResponse(error.what, 422)
        cookie = self._guard.log_in(token, request.headers, client_of(request.scope))
        if isinstance(cookie, Refusal):
            return refused(cookie)
        return Response(status_code=NO_CONTENT, headers={"Set-Cookie": cookie})

    async def log_out(self, request: Request) -> Response:
        cookie = self._guard.log_out(request.headers)
        return Response(status_code=NO_CONTENT, headers={"Set-Cookie": cookie})


async def read_body(request: Request) -> bytes:
    """No more of it than a token or a change of settings can be."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY_BYTES:
            raise ConfigError("the request is too large", expected=f"{LARGEST_BODY_BYTES} bytes")
    return content


def _token(content: bytes) -> str:
    """From `{"token": "..."}`; what was sent instead is not repeated, because it may be nearly the token."""
    try:
        token = json.loads(content)["token"]
    except (ValueError, RecursionError, LookupError, TypeError):
        token = None
    if not isinstance(token, str):
        raise ConfigError("expected the token as JSON")
    return token
