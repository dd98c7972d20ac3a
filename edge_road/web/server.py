"""The socket and the server of a page: the daemon's and the fleet's are strict in the same way."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from edge_road.errors import ConfigError
from edge_road.web.settings import ServerSettings

HEAD_S = 5
"""to send a whole request, and between two of them"""
GONE_S = 20.0
"""a reader that takes nothing for so long has gone: its place among the few is free again"""
LARGEST_HEAD_BYTES = 16 * 1024


def listen(settings: ServerSettings) -> socket.socket:
    """Bound at the start, so that a port that is taken is known at once."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        channel = socket.socket(kind, socket.SOCK_STREAM)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * GONE_S))
        channel.bind(address)
    except (OSError, UnicodeError) as error:  # the latter: not the name of any host
        where = f"{settings.host}:{settings.port}"
        raise ConfigError("the web server cannot have this address", where=where, got=error) from None
    return channel


def new_server(app: Any, clients: int) -> Any:
    """uvicorn's; only here is it imported, because that takes a while."""
    import uvicorn

    from edge_road.web.protocol import Impatient

    logging.getLogger("uvicorn.error").addFilter(_is_news)
    return uvicorn.Server(
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


def _is_news(record: logging.LogRecord) -> bool:
    """With no time for leave-taking, uvicorn calls every end of the server and its streams an error."""
    reason = record.exc_info[0] if record.exc_info else None
    was_ended = reason is not None and issubclass(reason, asyncio.CancelledError)
    return not was_ended and "graceful shutdown exceeded" not in record.msg
