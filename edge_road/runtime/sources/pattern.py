"""Coded pictures for the fake backend, with scripted faults, to rehearse what a camera can do."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR
from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Image
from edge_road.runtime.sources.drive import DriveSource, write_truth
from edge_road.runtime.vehicle import PatternFault, PatternSource

Color = tuple[int, int, int]

GRAIN = 12
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

    def picture(self, number: int) -> Image | None:
        elapsed_s = (self._clock.mono_ns() - self.origin_ns) / 1e9
        fault = next((f for f in self._settings.faults if f.at <= elapsed_s < f.at + f.seconds), None)
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
        shape = (self._settings.height, self._settings.width, 3)
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
        return np.full(shape, 0 if fault.kind == "black" else 255, np.uint8)


@lru_cache(maxsize=8 * GRAINS)
def _grainy_picture(seed: int, size: tuple[int, int], color: Color) -> Image:
    grain = np.random.default_rng(seed).integers(-GRAIN, GRAIN + 1, (*size, 1))
    return np.asarray(grain + color, np.uint8)
