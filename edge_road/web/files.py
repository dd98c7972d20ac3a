"""The files of a page, read once: a request names one of them, never a path."""

from __future__ import annotations

from importlib import resources
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFiles:
    """Those of every page, and those in the folder `page` of one package."""

    def __init__(self, package: str) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        for place in ("edge_road.web", package):
            for file in resources.files(place).joinpath("page").iterdir():
                self._files[file.name] = (file.read_bytes(), TYPES[PurePath(file.name).suffix])

    async def answer(self, request: Request) -> Response:
        content, kind = self._files.get(request.path_params.get("name", "index.html"), (None, ""))
        return PlainTextResponse("not found", 404) if content is None else Response(content, media_type=kind)
