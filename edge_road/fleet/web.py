"""The fleet page's web server: one event loop, ended by a signal or after a time."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any

from edge_road.web.server import new_server


def serve(app: Any, channel: socket.socket, clients: int, duration_s: float | None) -> None:
    """Until SIGTERM, Ctrl-C or the end of the duration."""
    server = new_server(app, clients)

    async def run() -> None:
        if duration_s is not None:
            asyncio.get_running_loop().call_later(duration_s, _end, server)
        await server.serve(sockets=[channel])

    # uvicorn ends in peace at a signal and then raises it again for whoever listened before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    asyncio.run(run())


def _end(server: Any) -> None:
    server.should_exit = server.force_exit = True
