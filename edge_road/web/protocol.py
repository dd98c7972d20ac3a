"""HTTP with little patience: who does not finish a request in time is shown out (slow loris)."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from edge_road.web.server import HEAD_S

MOST_UNFINISHED = 24
"""connections without a whole request; the oldest goes, so that none of them keeps others out"""
LARGEST_BODY_BYTES = 64 * 1024


class Impatient(H11Protocol):
    """uvicorn's own timeout begins only after the first answer; this one runs until a request is whole."""

    _timer: asyncio.TimerHandle | None = None
    _came_s = 0.0
    _received = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._show_out)
        self._came_s = self.loop.time()
        others = [other for other in self.connections if isinstance(other, Impatient)]
        unfinished = [other for other in others if other._is_unfinished()]
        if len(unfinished) > MOST_UNFINISHED:
            min(unfinished, key=lambda other: other._came_s)._show_out()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > LARGEST_BODY_BYTES and not self.transport.is_closing():
            return self.transport.close()  # nothing that we offer takes so much
        super().data_received(data)
        if self._is_answering() and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return None

    def on_response_complete(self) -> None:
        self._received = 0
        super().on_response_complete()
        if not self.transport.is_closing():
            self._timer = self.loop.call_later(HEAD_S, self._show_out)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _is_unfinished(self) -> bool:
        return not self._is_answering() and not self.transport.is_closing()

    def _show_out(self) -> None:
        if self._is_unfinished():
            self.transport.close()
