"""The server of a page comes and goes without alarm."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Any

import pytest

from edge_road.clock import SystemClock
from edge_road.web.server import listen, new_server
from edge_road.web.settings import ServerSettings

pytest.importorskip("uvicorn")


async def endless(scope: Any, receive: Any, send: Any) -> None:
    """A stream, like that of the states."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": b"state", "more_body": True})
        await asyncio.sleep(0.05)


async def failing(scope: Any, receive: Any, send: Any) -> None:
    raise ZeroDivisionError


def reports_of(app: Any, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What a server with one reader logs until it has ended."""
    server, channel = new_server(app, clients=1), listen(ServerSettings(port=0))
    thread = threading.Thread(target=server.run, args=([channel],))
    with caplog.at_level(logging.INFO):
        thread.start()
        while not server.started:
            SystemClock().sleep(0.01)
        with socket.create_connection(channel.getsockname()) as reader:
            reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert reader.recv(100).startswith(b"HTTP/1.1 ")
            server.should_exit = True
            thread.join(timeout=10)
    assert not thread.is_alive()
    assert "Shutting down" in caplog.messages
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_server_that_is_told_to_stop_ends_its_streams_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert reports_of(endless, caplog) == []


def test_what_fails_in_an_answer_is_still_reported(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = reports_of(failing, caplog)
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
