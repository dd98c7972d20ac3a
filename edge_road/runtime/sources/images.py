"""A folder of pictures as a camera, in the order of their names; a folder of any size fits in memory."""

from __future__ import annotations

import heapq
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from edge_road.clock import Clock
from edge_road.datasets.decode import IMAGE_SUFFIXES, read_image
from edge_road.errors import CameraError, DataError
from edge_road.frames import Frame, Image
from edge_road.runtime.sources.base import EndOfStream, Pacer, stamped
from edge_road.runtime.vehicle_sources import ImageDirectorySource

log = logging.getLogger(__name__)

NAMES_AT_ONCE = 4096
MOST_TOLD = 20
"""unreadable pictures are named up to here, each once; then they are only counted"""


class ImageDirectory:
    """Pictures that cannot be decoded are skipped, named and counted; if none can, that is an error."""

    origin_ns = 0
    live = False

    def __init__(self, settings: ImageDirectorySource, clock: Clock) -> None:
        self.description = f"pictures of {settings.path} at {settings.fps:g} fps"
        self.period_s = 1 / settings.fps
        self.rejected = 0
        self._told: set[str] = set()
        self._settings, self._clock = settings, clock
        self._number = 0

    def open(self) -> None:
        self._pictures = self._all_pictures()
        self._next: Image | None = self._decode_next()
        self.origin_ns = self._clock.mono_ns()
        self._number = 0
        self._pacer = Pacer(self._clock, self._settings.fps, self.origin_ns)

    def read(self, deadline_ns: int) -> Frame | None:
        if self._next is None:
            self._next = self._decode_next()
        if not self._pacer.wait_for(self._number, deadline_ns):
            return None
        pixels, self._next = self._next, None
        self._number += 1
        return stamped(pixels, self._number - 1, self._clock.mono_ns(), self._clock)

    def close(self) -> None:
        pass

    def _decode_next(self) -> Image:
        try:
            return next(self._pictures)
        except StopIteration:
            raise EndOfStream from None

    def _all_pictures(self) -> Iterator[Image]:
        while True:
            readable = 0
            for name in self._names():
                try:
                    pixels = read_image(self._settings.path / name)
                except DataError as error:
                    self._reject(name, error)
                    continue
                readable += 1
                yield pixels
            if not readable:
                raise self._no_pictures()
            if not self._settings.loop:
                return

    def _reject(self, name: str, error: DataError) -> None:
        self.rejected += 1
        if name in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told.add(name)
        last = "; further ones are only counted" if len(self._told) == MOST_TOLD else ""
        log.warning(
            "left out %s: %s%s", self._settings.path / name, error.details.get("got", error.what), last
        )

    def _names(self) -> Iterator[str]:
        """All names in order, a few thousand at a time: each batch is one pass over the folder."""
        last = ""
        while batch := heapq.nsmallest(NAMES_AT_ONCE, (n for n in self._listed() if n > last)):
            yield from batch
            last = batch[-1]

    def _listed(self) -> Iterator[str]:
        try:
            with os.scandir(self._settings.path) as entries:
                yield from (entry.name for entry in entries if _is_picture(entry))
        except OSError as error:
            raise CameraError(
                "the folder of pictures cannot be read",
                where=self._settings.path,
                got=error.strerror,
            ) from None

    def _no_pictures(self) -> CameraError:
        return CameraError(
            "there is no readable picture in this folder",
            where=self._settings.path,
            got=f"{self.rejected} unreadable" if self.rejected else "no picture files",
            expected=f"files that end in {', '.join(IMAGE_SUFFIXES)}",
        )


def _is_picture(entry: os.DirEntry[str]) -> bool:
    """A plain file by its suffix; pipes, devices and loops of links are not."""
    try:
        return Path(entry.name).suffix.lower() in IMAGE_SUFFIXES and entry.is_file()
    except OSError:
        return False
