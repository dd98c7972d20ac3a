"""Where a page is served, and to whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from edge_road.config import StrictModel

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class ServerSettings(StrictModel):
    host: str = "127.0.0.1"
    """address to listen on; beyond the loopback a `token_file` is required"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8770
    """0: any free one, which the log names"""
    token_file: Path | None = None
    """whoever comes from outside this machine, or wants to change something, must show this token"""
    names: tuple[str, ...] = ()
    """host names, beside the loopback's, under which the server may be addressed"""
    clients: int = Field(default=16, ge=1, le=256)
    """readers of the event stream at the same time"""

    @model_validator(mode="after")
    def _open_needs_a_token(self) -> ServerSettings:
        if self.host not in LOOPBACK and self.token_file is None:
            raise ValueError("a server beyond the loopback needs a token_file")
        return self
