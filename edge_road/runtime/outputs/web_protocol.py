"""HTTP with little patience: who does not finish a request in time is shown out (slow loris)."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 5.0
LARGEST_BODY_BYTES = 64 * 1024


class Impatient(H11Protocol):
    """uvicorn's own timeout begins only after the first answer; this one runs until a request is whole."""

    _timer: asyncio.TimerHandle | None = None
    _received = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_S, self._show_out)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > LARGEST_BODY_BYTES and not self.transport.is_closing():
            return self.transport.close()  # nothing that we offer takes a body
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

    def _show_out(self) -> None:
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()
