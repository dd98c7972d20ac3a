"""A video file as a camera: PyAV decodes, and each frame comes when its time stamp says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import av
import av.error
from av.video.reformatter import VideoReformatter

from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.sources.base import EndOfStream, Intact, stamped, wait_until
from edge_road.runtime.vehicle_sources import VideoSource

LATEST_S = 0.5
"""a playback this far behind gives up the lost time instead of chasing it"""
MOST_PIXELS = 50_000_000


class VideoFile:
    live = False

    def __init__(self, settings: VideoSource, clock: Clock) -> None:
        self.description = f"video {settings.path}"
        self.period_s = 0.0
        self.origin_ns = 0
        self.rejected = 0
        self._settings, self._clock = settings, clock
        self._container: Any = None
        self._colours: Any = VideoReformatter()  # kept: to set it up takes longer than to use it
        self._number = 0

    def open(self) -> None:
        self._open_container()
        self._frames = self._all_frames()
        self._next: tuple[Any, float] | None = self._decode_next()  # an empty video shows here
        self._start_ns = self.origin_ns = self._clock.mono_ns()

    def read(self, deadline_ns: int) -> Frame | None:
        if self._next is None:
            self._next = self._decode_next()
        picture, seconds = self._next
        due_ns = self._start_ns + round(seconds * 1e9)
        if not wait_until(self._clock, due_ns, deadline_ns):
            return None
        now_ns = self._clock.mono_ns()
        if now_ns - due_ns > LATEST_S * 1e9:
            self._start_ns += now_ns - due_ns
        self._next = None
        self._number += 1
        pixels = self._colours.reformat(picture, format="rgb24").to_ndarray()
        return stamped(pixels, self._number - 1, now_ns, self._clock)

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None

    def _open_container(self) -> None:
        path = self._settings.path.absolute()  # never read as a protocol
        try:
            self._container = av.open(str(path), options={"protocol_whitelist": "file"})
        except (OSError, ValueError, av.error.FFmpegError) as error:
            raise CameraError("the video cannot be opened", where=path, got=_text(error)) from None
        if not self._container.streams.video:
            raise CameraError("the file has no video in it", where=path)
        stream = self._container.streams.video[0]
        if not 0 < stream.width * stream.height <= MOST_PIXELS:
            raise CameraError(
                "the video's pictures are too large", where=path, got=f"{stream.width} pixels wide"
            )
        stream.thread_count = 1
        self.period_s = 1 / float(stream.average_rate or 25)

    def _decode_next(self) -> tuple[Any, float]:
        try:
            return next(self._frames)
        except StopIteration:
            raise EndOfStream from None
        except (OSError, av.error.FFmpegError) as error:
            path = self._settings.path
            raise CameraError("the video cannot be read", where=path, got=_text(error)) from None

    def _all_frames(self) -> Iterator[tuple[Any, float]]:
        """Pictures with their seconds since the start, which go on rising from one round to the next."""
        start_s = 0.0
        while True:
            count, last_s = 0, start_s
            for picture, seconds in self._one_round():
                last_s = max(last_s, start_s + seconds)
                count += 1
                yield picture, start_s + seconds
            if not count:
                raise CameraError("the video has no frame that can be decoded", where=self._settings.path)
            if not self._settings.loop:
                return
            start_s = last_s + self.period_s
            self._container.seek(0)

    def _one_round(self) -> Iterator[tuple[Any, float]]:
        first_s: float | None = None
        newest_s, intact = 0.0, Intact()
        for packet in self._container.demux(video=0):
            try:
                pictures = packet.decode()
            except av.error.FFmpegError:
                self.rejected += 1
                intact.spoil(newest_s)
                continue
            for picture in pictures:
                newest_s = newest_s if picture.time is None else picture.time
                whole = intact.is_whole(picture.is_corrupt, bool(picture.key_frame), newest_s)
                if picture.time is None or not whole:
                    self.rejected += 1
                    continue
                first_s = picture.time if first_s is None else first_s
                yield picture, picture.time - first_s


def _text(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
