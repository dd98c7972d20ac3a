"""The files of the live page, read once: a request names one of them, never a path."""

from __future__ import annotations

from importlib import resources
from pathlib import PurePath

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
NO_PAGE = b"<!doctype html><title>edge_road</title><p>See <a href=state>state</a>, <a href=health>health</a>."


def page_files() -> dict[str, tuple[bytes, str]]:
    """name -> content and type; `index.html` is there in any case."""
    files = {"index.html": (NO_PAGE, TYPES[".html"])}
    folder = resources.files("edge_road.runtime").joinpath("web_page")
    if folder.is_dir():
        for file in folder.iterdir():
            kind = TYPES.get(PurePath(file.name).suffix)
            if kind is not None and file.is_file():
                files[file.name] = (file.read_bytes(), kind)
    return files
