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
    def __init__(self, package: str) -> None:
        self._files = page_files(package)

    async def answer(self, request: Request) -> Response:
        content, kind = self._files.get(request.path_params.get("name", "index.html"), (None, ""))
        return PlainTextResponse("not found", 404) if content is None else Response(content, media_type=kind)


def page_files(package: str) -> dict[str, tuple[bytes, str]]:
    """name -> content and type: those of every page, and those in the folder `page` of one package."""
    return {
        file.name: (file.read_bytes(), TYPES[PurePath(file.name).suffix])
        for place in ("edge_road.web", package)
        for file in resources.files(place).joinpath("page").iterdir()
    }
