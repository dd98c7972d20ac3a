"""The fleet page's server: rows once a second to every reader, tracks and events on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from edge_road.fleet.fleet import Fleet
from edge_road.runtime.outputs.web_entry import Guarded, client_of, refused
from edge_road.runtime.outputs.web_guard import Guard, Refusal
from edge_road.runtime.outputs.web_page import TYPES, page_files

EVERY_S = 1.0
LARGEST_LOGIN_BYTES = 4096
SHARED = ("page.css", "icon.svg", "words.js", "login.html", "login.js")
"""of the daemon's page: one look and one login for both"""


class FleetApp:
    def __init__(
        self, fleet: Fleet, health: Callable[[], dict[str, Any]], guard: Guard, clients: int
    ) -> None:
        self._fleet, self._health, self._guard, self._clients = fleet, health, guard, clients
        self._readers = 0
        self._files = _files()

    def routes(self) -> list[Route]:
        return [
            Route("/", self.page),
            Route("/vehicles", self.vehicles),
            Route("/vehicles/{name}/events", self.vehicle_events),
            Route("/tracks", self.tracks),
            Route("/health", self.health),
            Route("/stream", self.stream),
            Route("/session", self.session),
            Route("/login", self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
            Route("/{name}", self.page),
        ]

    async def page(self, request: Request) -> Response:
        content, kind = self._files.get(request.path_params.get("name", "index.html"), (None, ""))
        return PlainTextResponse("not found", 404) if content is None else Response(content, media_type=kind)

    async def vehicles(self, request: Request) -> Response:
        return JSONResponse(self._fleet.rows())

    async def vehicle_events(self, request: Request) -> Response:
        events = self._fleet.events(request.path_params["name"])
        return PlainTextResponse("no such vehicle", 404) if events is None else JSONResponse(events)

    async def tracks(self, request: Request) -> Response:
        tracks = self._fleet.tracks()
        return JSONResponse(
            {name: [(p.latitude, p.longitude, p.state) for p in points] for name, points in tracks.items()}
        )

    async def health(self, request: Request) -> Response:
        health = self._health()
        return JSONResponse(health, 200 if health["broker"] == "ok" else 503)

    async def stream(self, request: Request) -> Response:
        if self._readers >= self._clients:
            return PlainTextResponse("too many readers", 503)
        return StreamingResponse(self._ticks(request), media_type="text/event-stream")

    async def _ticks(self, request: Request) -> AsyncIterator[str]:
        self._readers += 1
        try:
            while self._guard.goes_on(request.headers):
                news = {"vehicles": self._fleet.rows(), "health": self._health()}
                yield f"data: {json.dumps(news, separators=(',', ':'))}\n\n"
                await asyncio.sleep(EVERY_S)
        finally:
            self._readers -= 1

    async def session(self, request: Request) -> Response:
        return JSONResponse(asdict(self._guard.rights(request.headers)))

    async def log_in(self, request: Request) -> Response:
        cookie = self._guard.log_in(await _shown_token(request), request.headers, client_of(request.scope))
        if isinstance(cookie, Refusal):
            return refused(cookie)
        return Response(status_code=204, headers={"Set-Cookie": cookie})

    async def log_out(self, request: Request) -> Response:
        return Response(status_code=204, headers={"Set-Cookie": self._guard.log_out(request.headers)})


async def _shown_token(request: Request) -> str:
    """From `{"token": "..."}`; anything else is a wrong token."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_LOGIN_BYTES:
            return ""
    try:
        return str(json.loads(content)["token"])
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""


def _files() -> dict[str, tuple[bytes, str]]:
    shared = page_files()
    files = {name: shared[name] for name in SHARED if name in shared}
    for file in resources.files("edge_road.fleet").joinpath("page").iterdir():
        kind = TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            files[file.name] = (file.read_bytes(), kind)
    return files


def build_app(fleet: Fleet, health: Callable[[], dict[str, Any]], guard: Guard, clients: int) -> ASGIApp:
    return Guarded(Starlette(routes=FleetApp(fleet, health, guard, clients).routes()), guard)
