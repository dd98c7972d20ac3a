"""Coded pictures for the fake backend, with scripted faults, to rehearse what a camera can do."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR
from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Frame, Image
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.sources.drive import DriveSource, write_truth
from edge_road.runtime.vehicle_sources import PatternFault, PatternSource

Color = tuple[int, int, int]

GRAIN = 12
SHADE = 10
"""grey levels from top to bottom: pure grain would be taken for a camera without a picture"""
GRAINS = 7
"""as many different pictures of one state"""


class PatternCamera(DriveSource):
    def __init__(self, settings: PatternSource, clock: Clock, origin_ns: int | None = None) -> None:
        self._settings = settings
        seconds = sum(segment.seconds for segment in settings.segments)
        description = f"test pattern, {seconds:g} s at {settings.fps:g} fps"
        super().__init__(clock, settings.fps, seconds, settings.loop, origin_ns, description)

    def open(self) -> None:
        super().open()
        segments = [(segment.state, segment.seconds) for segment in self._settings.segments]
        write_truth(self._settings.truth, self.origin_ns, segments)

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        frame = super().read(deadline_ns)
        fault = self._fault()
        if not isinstance(frame, Frame) or fault is None:
            return frame
        if fault.kind == "decode":
            self.rejected += 1
            return Unreadable(frame.number, frame.captured_mono_ns, frame.captured_utc)
        if fault.kind in ("repeat_time", "back_in_time"):
            back_ns = 10**6 * (2 if fault.kind == "repeat_time" else frame.number)
            at_ns = self.origin_ns + round(fault.at * 1e9) - back_ns
            return Frame(frame.pixels, frame.number, at_ns, frame.captured_utc)
        return frame

    def _fault(self) -> PatternFault | None:
        elapsed_s = (self._clock.mono_ns() - self.origin_ns) / 1e9
        return next((f for f in self._settings.faults if f.at <= elapsed_s < f.at + f.seconds), None)

    def picture(self, number: int) -> Image | None:
        fault = self._fault()
        if fault is None:
            return self._plain(number)
        return self._faulty(fault, number)

    def _plain(self, number: int, shrink: int = 1) -> Image:
        return self._grainy(number, (LEVEL_OF_STATE[self._state_at(number / self._fps)],) * 3, shrink)

    def _grainy(self, number: int, color: Color, shrink: int = 1) -> Image:
        size = (self._settings.height // shrink, self._settings.width // shrink)
        return _grainy_picture(number % GRAINS, size, color)

    def _state_at(self, seconds: float) -> str:
        for segment in self._settings.segments:
            seconds -= segment.seconds
            if seconds < 0:
                return segment.state
        return self._settings.segments[-1].state

    def _faulty(self, fault: PatternFault, number: int) -> Image | None:
        """What the camera shows; faults of time and of bytes are made in `read`."""
        if fault.kind == "error":
            raise CameraError("the camera is gone", where=self.description, got="a scripted fault")
        if fault.kind == "hang":
            self._clock.sleep(fault.seconds)  # past every deadline, like a driver that is stuck
            return None
        if fault.kind == "silence":
            return None
        if fault.kind == "freeze":
            return self._plain(round(fault.at * self._fps))
        if fault.kind == "resize":
            return self._plain(number, shrink=2)
        if fault.kind == "nan":
            return self._grainy(number, NAN_COLOR)
        return self._spoilt(fault.kind, self._plain(number), number)

    def _spoilt(self, kind: str, picture: Image, number: int) -> Image:
        if kind == "noise":
            return np.asarray(np.random.default_rng(number).integers(0, 256, picture.shape), np.uint8)
        if kind == "blur":
            return np.asarray(cv2.GaussianBlur(picture, (0, 0), picture.shape[1] / 20), np.uint8)
        if kind == "dirt":
            result: Image = picture.copy()
            result[:, picture.shape[1] // 4 :] = LEVEL_OF_STATE[self._state_at(number / self._fps)]
            return result
        if kind in ("black", "white"):
            return np.full(picture.shape, 0 if kind == "black" else 255, np.uint8)
        return picture


@lru_cache(maxsize=8 * GRAINS)
def _grainy_picture(seed: int, size: tuple[int, int], color: Color) -> Image:
    grain = np.random.default_rng(seed).integers(-GRAIN, GRAIN + 1, (*size, 1))
    shade = np.round(np.linspace(-SHADE, SHADE, size[0])).astype(np.int64)[:, None, None]
    return np.asarray(grain + shade + color, np.uint8)
