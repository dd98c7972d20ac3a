"""The web server's answers. Imported in its own thread: Starlette takes longer than a heartbeat may."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from edge_road.clock import SystemClock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.crop_setup import CropChange, apply, parse_change, preview
from edge_road.runtime.outputs.hub import Hub
from edge_road.runtime.outputs.metrics import CONTENT_TYPE, Metrics
from edge_road.runtime.outputs.self_test import SelfTest
from edge_road.runtime.outputs.web_api import openapi
from edge_road.runtime.outputs.web_camera import CameraFeed
from edge_road.runtime.outputs.web_past import Album, History
from edge_road.runtime.outputs.web_stream import stream, told
from edge_road.runtime.parts_file import parts_path, place_of, read_parts, wish
from edge_road.runtime.snapshot import read_snapshot, snapshot_path
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.web.entry import Guarded
from edge_road.web.files import PageFiles
from edge_road.web.guard import Guard
from edge_road.web.login import NO_CONTENT, Login, read_body


class WebApp:
    """`vehicle` tells the settings of now: they change while the daemon runs."""

    def __init__(
        self,
        status: Status,
        vehicle: Callable[[], Vehicle],
        hub: Hub,
        guard: Guard,
        reload: Callable[[], None],
        vehicle_file: Path | None,
        history: History,
        album: Album,
    ) -> None:
        self._status, self._vehicle, self._hub, self._guard = status, vehicle, hub, guard
        self._reload, self._vehicle_file = reload, vehicle_file
        self._history, self._album = history, album
        self._camera = CameraFeed(self._newest_picture, hub.most_readers)
        self._metrics = Metrics(status)
        self._self_test = SelfTest(status, vehicle)
        self._files = PageFiles("edge_road.runtime")
        self._api = openapi()

    def routes(self) -> list[Route]:
        return [
            Route("/", self._files.answer),
            Route("/state", self.state),
            Route("/events", self.events),
            Route("/history", self.history),
            Route("/pictures/{number:int}.jpg", self.picture),
            Route("/health", self.health),
            Route("/about", self.about),
            Route("/metrics", self.metrics),
            Route("/parts", self.parts),
            Route("/camera", self.camera),
            Route("/snapshot.jpg", self.snapshot),
            Route("/openapi.json", self.openapi),
            *Login(self._guard).routes(),
            Route("/reload", self.reload, methods=["POST"]),
            Route("/smoke", self.last_smoke),
            Route("/smoke", self.smoke, methods=["POST"]),
            Route("/setup", self.setup, methods=["POST"]),
            Route("/setup/preview", self.setup_preview, methods=["POST"]),
            Route("/{name}", self._files.answer),
        ]

    async def state(self, request: Request) -> Response:
        newest = self._status.newest
        if newest is None or not self._status.alive:
            return PlainTextResponse("no message that still holds", 503)
        return Response(newest[1], media_type="application/json")

    async def events(self, request: Request) -> Response:
        parts = stream(self._hub, self._status, lambda: self._guard.goes_on(request.headers))
        if parts is None:
            return PlainTextResponse("too many readers", 503)
        return StreamingResponse(parts, media_type="text/event-stream")

    async def history(self, request: Request) -> Response:
        return JSONResponse({"samples": self._history.samples(), "events": self._album.events()})

    async def picture(self, request: Request) -> Response:
        return _jpeg(self._album.picture(request.path_params["number"]))

    async def snapshot(self, request: Request) -> Response:
        return _jpeg(self._newest_picture())

    async def camera(self, request: Request) -> Response:
        if snapshot_path(self._vehicle()) is None:
            return _jpeg(None)
        pictures = self._camera.stream(lambda: self._guard.goes_on(request.headers))
        if pictures is None:
            return PlainTextResponse("too many readers", 503)
        return StreamingResponse(pictures, media_type="application/octet-stream")

    def _newest_picture(self) -> bytes | None:
        return read_snapshot(self._vehicle(), SystemClock())

    async def health(self, request: Request) -> Response:
        return JSONResponse(self._status.health(), 200 if self._status.alive else 503)

    async def about(self, request: Request) -> Response:
        newest, vehicle = self._status.newest, self._vehicle()
        return JSONResponse(
            {
                "vehicle": vehicle.vehicle,
                "version": newest[0].version if newest else None,
                "model": newest[0].model_digest if newest else None,
                "settings": newest[0].config_digest if newest else None,
                "predictor": self._status.predictor,
                "source": self._status.source,
                "boot": self._status.boot_id,
                "machine": told(asdict(self._status.machine_facts)),
                "regions": _places(vehicle),
            }
        )

    async def parts(self, request: Request) -> Response:
        path = parts_path(self._vehicle())
        if path is not None:
            wish(path)
        return JSONResponse(read_parts(path))

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(self._api)

    async def reload(self, request: Request) -> Response:
        self._reload()
        return JSONResponse({"asked": True}, 202)

    async def smoke(self, request: Request) -> Response:
        result = await self._self_test.run()
        return JSONResponse(result, 200 if "passed" in result else 409)

    async def last_smoke(self, request: Request) -> Response:
        return JSONResponse(self._self_test.newest())

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
            change = parse_change(await read_body(request))
            return JSONResponse(act(self._vehicle_file, change))
        except (EdgeRoadError, OSError) as error:
            return JSONResponse({"error": str(error)}, 422)


def _places(vehicle: Vehicle) -> list[dict[str, Any]]:
    """Without settings the worker, which has the bundle, tells where it looks."""
    if vehicle.regions:
        return [place_of(region) for region in vehicle.regions]
    told = read_parts(parts_path(vehicle))["regions"]
    return [{name: value for name, value in region.items() if name != "shares"} for region in told]


def _jpeg(picture: bytes | None) -> Response:
    return Response(status_code=NO_CONTENT) if picture is None else Response(picture, media_type="image/jpeg")


def build_app(
    status: Status,
    vehicle: Callable[[], Vehicle],
    hub: Hub,
    guard: Guard,
    reload: Callable[[], None],
    vehicle_file: Path | None = None,
    history: History | None = None,
    album: Album | None = None,
) -> ASGIApp:
    history, album = history or History(SystemClock()), album or Album(lambda: None)
    app = WebApp(status, vehicle, hub, guard, reload, vehicle_file, history, album)
    return Guarded(Starlette(routes=app.routes()), guard)
