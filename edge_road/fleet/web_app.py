"""The fleet page's server: rows once a second to every reader, tracks and events on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from edge_road.fleet.fleet import Fleet
from edge_road.web.entry import Guarded
from edge_road.web.files import PageFiles
from edge_road.web.guard import Guard
from edge_road.web.login import Login

EVERY_S = 1.0


class FleetApp:
    def __init__(
        self, fleet: Fleet, health: Callable[[], dict[str, Any]], guard: Guard, clients: int
    ) -> None:
        self._fleet, self._health, self._guard, self._clients = fleet, health, guard, clients
        self._readers = 0
        self._files = PageFiles("edge_road.fleet")

    def routes(self) -> list[Route]:
        return [
            Route("/", self._files.answer),
            Route("/vehicles", self.vehicles),
            Route("/vehicles/{name}/events", self.vehicle_events),
            Route("/tracks", self.tracks),
            Route("/health", self.health),
            Route("/stream", self.stream),
            *Login(self._guard).routes(),
            Route("/{name}", self._files.answer),
        ]

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


def build_app(fleet: Fleet, health: Callable[[], dict[str, Any]], guard: Guard, clients: int) -> ASGIApp:
    return Guarded(Starlette(routes=FleetApp(fleet, health, guard, clients).routes()), guard)
