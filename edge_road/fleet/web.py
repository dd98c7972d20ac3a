"""The fleet page's web server: one event loop, ended by a signal or after a time."""

from __future__ import annotations

import asyncio
import signal
import socket
from typing import Any

from edge_road.errors import ConfigError
from edge_road.runtime.vehicle_outputs import HttpOutput

HEAD_S = 5
LARGEST_HEAD_BYTES = 16 * 1024


def listen(settings: HttpOutput) -> socket.socket:
    """Bound at the start, so that a port that is taken is known at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        channel = socket.socket(family, socket.SOCK_STREAM)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        channel.bind(address)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise ConfigError("the fleet page cannot have this address", where=where, got=error) from None
    return channel


def serve(app: Any, channel: socket.socket, clients: int, duration_s: float | None) -> None:
    """Until SIGTERM, Ctrl-C or the end of the duration."""
    import uvicorn

    from edge_road.runtime.outputs.web_protocol import Impatient

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=Impatient,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=HEAD_S,
            timeout_graceful_shutdown=0,
            limit_concurrency=2 * clients + 32,
            h11_max_incomplete_event_size=LARGEST_HEAD_BYTES,
        )
    )

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
