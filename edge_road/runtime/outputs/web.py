"""The web server: a thread with its own event loop, which nothing else waits for."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge_road.errors import ConfigError
from edge_road.road_state import RoadState
from edge_road.runtime.outputs.hub import Hub
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.outputs.secrets import read_secret
from edge_road.runtime.outputs.web_guard import Guard
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput

log = logging.getLogger(__name__)

MOST_WAITING = 64
"""messages that one reader may let wait"""
HEAD_S = 5.0
"""to send a whole request, and between two of them"""
LARGEST_HEAD_BYTES = 16 * 1024


class Web:
    gone = False

    def __init__(
        self,
        settings: HttpOutput,
        status: Status,
        vehicle: Vehicle,
        reload: Callable[[], None],
        vehicle_file: Path | None = None,
    ) -> None:
        self._settings, self._status, self._vehicle, self._reload = settings, status, vehicle, reload
        self._vehicle_file = vehicle_file
        token = read_secret(settings.token_file) if settings.token_file else None
        self._guard = Guard(settings, token)
        self._socket = _listen(settings)
        self.port = int(self._socket.getsockname()[1])
        self._hub = Hub(settings.clients, MOST_WAITING)
        self._server: Any = None
        self._failure = ""
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def start(self) -> None:
        log.info("http://%s:%d", self._settings.host, self.port)
        self._thread.start()

    def publish(self, message: RoadState, line: str) -> None:
        self._hub.publish(f"event: state\ndata: {line}\n\n")

    def publish_event(self, line: str) -> None:
        self._hub.publish(f"event: event\ndata: {_for_people(line)}\n\n")

    def health(self) -> OutputHealth:
        name = f"http {self._settings.host}:{self.port}"
        return OutputHealth(name, not self._failure, self._failure, self._hub.lost)

    def close(self, timeout_s: float) -> None:
        self._closing = True
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
        if self._thread.is_alive():
            self._thread.join(min(timeout_s, 0.5))
        self._socket.close()

    def _run(self) -> None:
        try:
            import uvicorn

            from edge_road.runtime.outputs.web_app import build_app

            app = build_app(
                self._status, self._vehicle, self._hub, self._guard, self._reload, self._vehicle_file
            )
            self._server = uvicorn.Server(self._config(uvicorn, app))
            if not self._closing:
                asyncio.run(self._server.serve(sockets=[self._socket]))
        except Exception as error:  # the road is told with or without a page
            self._failure = str(error) or type(error).__name__
            if not self._closing:
                log.exception("the web server has ended")

    def _config(self, uvicorn: Any, app: Any) -> Any:
        from edge_road.runtime.outputs.web_protocol import Impatient

        return uvicorn.Config(
            app,
            http=Impatient,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(HEAD_S),
            timeout_graceful_shutdown=0,
            limit_concurrency=2 * self._settings.clients + 32,
            h11_max_incomplete_event_size=LARGEST_HEAD_BYTES,
        )


def _for_people(line: str) -> str:
    """The event, with what a list of events shows at its top level."""
    event = json.loads(line)
    details = event["details"]
    text = ", ".join(str(details[key]) for key in ("fault", "reason", "error") if key in details)
    shown = {"at": event["utc"], "text": text or None}
    shown |= {key: details[key] for key in ("state", "reasons") if key in details}
    return json.dumps({**event, **shown}, separators=(",", ":"))


def _listen(settings: HttpOutput) -> socket.socket:
    """Bound at the start, so that a port that is taken is known at once."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        channel = socket.socket(kind, socket.SOCK_STREAM)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        channel.bind(address)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise ConfigError("the web server cannot have this address", where=where, got=error) from None
    return channel
