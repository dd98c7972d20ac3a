"""The web server: a thread with its own event loop, which nothing else waits for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edge_road.clock import SystemClock
from edge_road.road_state import RoadState
from edge_road.runtime.outputs.hub import Hub
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.outputs.web_past import MOST_EVENTS, Album, History
from edge_road.runtime.outputs.web_stream import sse
from edge_road.runtime.snapshot import read_snapshot
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import HttpOutput
from edge_road.secret_file import read_secret
from edge_road.web.guard import Guard
from edge_road.web.server import listen, new_server

log = logging.getLogger(__name__)

MOST_WAITING = 64
"""messages that one reader may let wait"""
STATE_EVERY_NS = 200_000_000
"""an unchanged state goes to readers this often, or twice while it is valid; a changed one at once"""


class Web:
    """Messages come from one thread and events from another; both only leave them for ours."""

    gone = False

    def __init__(
        self,
        settings: HttpOutput,
        status: Status,
        vehicle: Callable[[], Vehicle],
        reload: Callable[[], None],
        vehicle_file: Path | None = None,
    ) -> None:
        self._settings, self._status, self._vehicle, self._reload = settings, status, vehicle, reload
        self._vehicle_file = vehicle_file
        token = read_secret(settings.token_file) if settings.token_file else None
        self._guard = Guard(settings, token)
        self._socket = listen(settings)
        self.port = int(self._socket.getsockname()[1])
        self._hub = Hub(settings.clients, MOST_WAITING)
        self._machine = SystemClock()
        self._history = History(self._machine)
        self._album = Album(lambda: read_snapshot(vehicle(), self._machine))
        self._told: tuple[object, ...] = ()
        self._tell_ns = 0
        self._events: deque[str] = deque(maxlen=MOST_EVENTS)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Any = None
        self._failure = ""
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    def start(self) -> None:
        log.info("http://%s:%d", self._settings.host, self.port)
        self._thread.start()

    def publish(self, message: RoadState, line: str) -> None:
        self._history.add(message)
        now_ns, said = self._machine.mono_ns(), (message.state, message.reasons)
        if said == self._told and now_ns < self._tell_ns:
            return
        self._told, self._tell_ns = said, now_ns + min(STATE_EVERY_NS, message.valid_for_ms * 500_000)
        self._hub.publish(sse("state", line))

    def publish_event(self, line: str) -> None:
        self._events.append(line)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._tell_events)

    def _tell_events(self) -> None:
        """In our own thread, because a picture is read from the disk."""
        while self._events:
            event = self._album.keep(self._events.popleft())
            self._hub.publish(sse("event", json.dumps(event, separators=(",", ":"))))

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
            from edge_road.runtime.outputs.web_app import build_app

            app = build_app(
                self._status,
                self._vehicle,
                self._hub,
                self._guard,
                self._reload,
                self._vehicle_file,
                self._history,
                self._album,
            )
            self._server = new_server(app, self._settings.clients)
            if not self._closing:
                asyncio.run(self._serve())
        except Exception as error:  # the road is told with or without a page
            self._failure = str(error) or type(error).__name__
            if not self._closing:
                log.exception("the web server has ended")

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tell_events()
        await self._server.serve(sockets=[self._socket])
