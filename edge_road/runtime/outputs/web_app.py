"""The web server's answers. Imported in its own thread: Starlette takes longer than a heartbeat may."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from edge_road.clock import SystemClock
from edge_road.errors import ConfigError, EdgeRoadError
from edge_road.runtime.crop_setup import CropChange, apply, parse_change, preview
from edge_road.runtime.outputs.hub import Hub
from edge_road.runtime.outputs.metrics import CONTENT_TYPE, Metrics
from edge_road.runtime.outputs.self_test import SelfTest
from edge_road.runtime.outputs.web_api import openapi
from edge_road.runtime.outputs.web_guard import Guard
from edge_road.runtime.outputs.web_page import page_files
from edge_road.runtime.snapshot import read_snapshot
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle

log = logging.getLogger(__name__)

HEALTH_EVERY_S = 2.0
LARGEST_CHANGE_BYTES = 4096
SAFE_HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class WebApp:
    def __init__(
        self,
        status: Status,
        vehicle: Vehicle,
        hub: Hub,
        reload: Callable[[], None],
        vehicle_file: Path | None,
    ) -> None:
        self._status, self._vehicle, self._hub, self._reload = status, vehicle, hub, reload
        self._vehicle_file = vehicle_file
        self._metrics = Metrics(status)
        self._self_test = SelfTest(vehicle)
        self._files = page_files()
        self._api = openapi()

    def routes(self) -> list[Route]:
        return [
            Route("/", self.page),
            Route("/state", self.state),
            Route("/events", self.events),
            Route("/health", self.health),
            Route("/about", self.about),
            Route("/metrics", self.metrics),
            Route("/snapshot.jpg", self.snapshot),
            Route("/openapi.json", self.openapi),
            Route("/reload", self.reload, methods=["POST"]),
            Route("/smoke", self.smoke, methods=["POST"]),
            Route("/setup", self.setup, methods=["POST"]),
            Route("/setup/preview", self.setup_preview, methods=["POST"]),
            Route("/{name}", self.page),
        ]

    async def page(self, request: Request) -> Response:
        content, kind = self._files.get(request.path_params.get("name", "index.html"), (None, ""))
        return PlainTextResponse("not found", 404) if content is None else Response(content, media_type=kind)

    async def state(self, request: Request) -> Response:
        newest = self._status.newest
        if newest is None:
            return PlainTextResponse("no message yet", 503)
        return Response(newest[1], media_type="application/json")

    async def health(self, request: Request) -> Response:
        return JSONResponse(self._status.health(), 200 if self._status.alive else 503)

    async def about(self, request: Request) -> Response:
        newest = self._status.newest
        return JSONResponse(
            {
                "vehicle": self._vehicle.vehicle,
                "version": newest[0].version if newest else None,
                "model": newest[0].model_digest if newest else None,
                "settings": newest[0].config_digest if newest else None,
                "predictor": self._status.predictor,
                "source": self._status.source,
                "boot": self._status.boot_id,
                "regions": [
                    {"name": region.name, **region.crop.model_dump()} for region in self._vehicle.regions
                ],
            }
        )

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(self._api)

    async def snapshot(self, request: Request) -> Response:
        picture = read_snapshot(self._vehicle, SystemClock())
        return Response(status_code=204) if picture is None else Response(picture, media_type="image/jpeg")

    async def reload(self, request: Request) -> Response:
        self._reload()
        return JSONResponse({"asked": True}, 202)

    async def smoke(self, request: Request) -> Response:
        result = await self._self_test.run()
        return JSONResponse(result, 200 if "passed" in result else 409)

    async def setup_preview(self, request: Request) -> Response:
        return await self._crop_change(request, lambda path, change: {"change": preview(path, change)})

    async def setup(self, request: Request) -> Response:
        def write(path: Path, change: CropChange) -> dict[str, str]:
            shown = preview(path, change)
            backup = apply(path, change)
            self._reload()
            return {"change": shown, "backup": backup.name}

        return await self._crop_change(request, write)

    async def _crop_change(
        self, request: Request, act: Callable[[Path, CropChange], dict[str, str]]
    ) -> Response:
        if self._vehicle_file is None:
            return JSONResponse({"error": "the daemon was started without a vehicle file"}, 409)
        try:
            change = parse_change(await _body(request))
            return JSONResponse(act(self._vehicle_file, change))
        except (EdgeRoadError, OSError) as error:
            return JSONResponse({"error": str(error)}, 422)

    async def events(self, request: Request) -> Response:
        loop, come = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(come.set)

        reader = self._hub.join(wake)
        if reader is None:
            return PlainTextResponse("too many readers", 503)

        async def stream() -> AsyncIterator[str]:
            try:
                newest = self._status.newest
                if newest is not None:
                    yield _sse("state", newest[1])
                while True:
                    yield _sse("health", json.dumps(flat_health(self._status)))
                    ends = loop.time() + HEALTH_EVERY_S
                    while loop.time() < ends:
                        try:
                            await asyncio.wait_for(come.wait(), ends - loop.time())
                        except asyncio.TimeoutError:
                            break
                        come.clear()
                        if items := reader.take():
                            yield "".join(items)
            finally:
                self._hub.leave(reader)

        return StreamingResponse(stream(), media_type="text/event-stream")


async def _body(request: Request) -> bytes:
    """No more of it than a change can be."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_CHANGE_BYTES:
            raise ConfigError("the request is too large", expected=f"{LARGEST_CHANGE_BYTES} bytes")
    return content


def _sse(name: str, content: str) -> str:
    return f"event: {name}\ndata: {content}\n\n"


def flat_health(status: Status) -> dict[str, object]:
    """One value a name, for a table."""
    health = status.health()
    storage, outputs = health.pop("storage") or {}, health.pop("outputs")
    flat: dict[str, object] = {name: value for name, value in health.items() if name != "reasons"}
    flat["storage"] = "ok" if storage.get("ok", True) else storage.get("detail")
    flat["events_waiting"] = storage.get("waiting", 0)
    for output in outputs:
        flat[output["name"]] = "ok" if output["ok"] else output["detail"] or "failing"
    return flat


class Guarded:
    """Asks the guard first; a refused request reaches nothing."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app, self._guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._guard.refusal(scope["method"], scope["path"], headers)
        if refusal is not None:
            return await PlainTextResponse(refusal.what, refusal.status)(scope, receive, _safely(send))
        await self._app(scope, receive, _safely(send))
        return None


def _safely(send: Send) -> Send:
    async def with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.encode(), value.encode()) for name, value in SAFE_HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return with_headers


def build_app(
    status: Status,
    vehicle: Vehicle,
    hub: Hub,
    guard: Guard,
    reload: Callable[[], None],
    vehicle_file: Path | None = None,
) -> ASGIApp:
    routes = WebApp(status, vehicle, hub, reload, vehicle_file).routes()
    return Guarded(Starlette(routes=routes), guard)
