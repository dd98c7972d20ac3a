"""A network camera: RTSP, decoded by PyAV."""

from __future__ import annotations

from collections import deque
from typing import Any

import av
import av.error
import av.logging
from av.video.reformatter import VideoReformatter

from edge_road.clock import Clock, utc_text
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.logs import safe_text
from edge_road.runtime.sources.base import Intact, Lag, RisingTimes, Unreadable, stamped
from edge_road.runtime.vehicle_sources import RtspSource

MOST_PIXELS = 16_000_000
BLIND_S = 3.0
"""packets without a picture, or times that do not rise: a fresh start may help"""
HELD_BACK_S = 0.3
"""a picture that comes so much later than its time stamp says may have been held back by the library"""


class RtspCamera:
    """The library's calls end by themselves after `open_s` and `silent_s`; the stream is then opened anew."""

    live = True
    origin_ns = 0

    def __init__(self, settings: RtspSource, clock: Clock) -> None:
        self.description = f"RTSP {safe_text(settings.url)}"
        self.period_s = 1 / settings.fps
        self.rejected = 0
        self._settings, self._clock = settings, clock
        self._container: Any = None
        self._colours: Any = VideoReformatter()  # kept: to set it up takes longer than to use it
        self._number = 0

    def open(self) -> None:
        av.logging.set_level(av.logging.PANIC)  # its lines repeat the address with its password
        try:
            self._container = av.open(
                self._settings.url,
                options=self._options(),
                timeout=(self._settings.open_s, self._settings.silent_s / 2),  # it tries twice
            )
        except (OSError, ValueError, av.error.FFmpegError) as error:
            raise self._trouble("the camera cannot be opened", error) from None
        if not self._container.streams.video:
            raise CameraError("the camera sends no video", where=self.description)
        stream = self._container.streams.video[0]
        stream.thread_count = 1  # more threads decode later, not sooner
        if stream.average_rate:
            self.period_s = 1 / min(240.0, max(1.0, float(stream.average_rate)))
        self.origin_ns = self._heard_ns = self._clock.mono_ns()
        self._packets = self._container.demux(stream)
        self._pictures: deque[Any] = deque()
        self._times, self._intact, self._lag = RisingTimes(), Intact(), Lag()
        self._last: tuple[int, float | None] | None = None

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        if self._clock.mono_ns() - self._heard_ns > BLIND_S * 1e9:
            raise CameraError("the camera sends no new pictures", where=self.description)
        while not self._pictures:
            if self._clock.mono_ns() >= deadline_ns:
                return None
            try:
                self._pictures.extend(next(self._packets).decode())
            except StopIteration:
                raise CameraError("the camera has ended the stream", where=self.description) from None
            except av.error.InvalidDataError:
                self._intact.spoil(self._clock.mono_ns() / 1e9)
                return self._unreadable()
            except (OSError, av.error.FFmpegError) as error:
                raise self._trouble("the camera is lost", error) from None
        return self._frame(self._pictures.popleft())

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None

    def _frame(self, picture: Any) -> Frame | Unreadable | None:
        now_ns = self._clock.mono_ns()
        held_back = self._is_held_back(now_ns, picture.time)
        whole = self._intact.is_whole(picture.is_corrupt, bool(picture.key_frame), now_ns / 1e9)
        if not self._times.rises(picture.pts) or held_back:
            self.rejected += 1
            return None
        if not whole or picture.width * picture.height > MOST_PIXELS:
            return self._unreadable()
        self._number += 1
        self._heard_ns = now_ns
        captured_ns = now_ns - round(self._lag.behind_s(now_ns / 1e9, picture.time) * 1e9)
        pixels = self._colours.reformat(picture, format="rgb24").to_ndarray()
        return stamped(pixels, self._number, captured_ns, self._clock)

    def _is_held_back(self, now_ns: int, time_s: float | None) -> bool:
        """Whether it came much longer after the picture before than it was taken."""
        last_ns, last_s = self._last or (now_ns, time_s)
        self._last = (now_ns, time_s)
        gap_s = 0.0 if time_s is None or last_s is None else time_s - last_s
        return (now_ns - last_ns) / 1e9 > gap_s + max(HELD_BACK_S, 3 * self.period_s)

    def _unreadable(self) -> Unreadable:
        self.rejected += 1
        self._number += 1
        return Unreadable(self._number, self._clock.mono_ns(), utc_text(self._clock.utc()))

    def _options(self) -> dict[str, str]:
        protocols = "rtsp,rtp,udp,tcp"
        return {
            "protocol_whitelist": f"{protocols},tls" if self._settings.url.startswith("rtsps") else protocols,
            "rtsp_transport": self._settings.transport,
            "allowed_media_types": "video",
            "fflags": "nobuffer",
            "flags": "low_delay",
            "analyzeduration": "500000",
            "max_delay": "100000",
        }

    def _trouble(self, what: str, error: Exception) -> CameraError:
        got = getattr(error, "strerror", None) or type(error).__name__
        return CameraError(what, where=self.description, got=safe_text(got))
