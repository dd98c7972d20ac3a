"""Coded pictures for the fake backend, with scripted faults, to rehearse what a camera can do."""

from __future__ import annotations

import numpy as np

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR
from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Image
from edge_road.runtime.sources.drive import DriveSource, write_truth
from edge_road.runtime.vehicle import PatternFault, PatternSource

GRAIN = 12
GRAINS = 7
"""as many different pictures of one state"""


class PatternCamera(DriveSource):
    def __init__(self, settings: PatternSource, clock: Clock, origin_ns: int | None = None) -> None:
        self._settings = settings
        shape = (GRAINS, settings.height, settings.width, 1)
        self._grains = np.random.default_rng(0).integers(0, 2 * GRAIN + 1, shape, dtype=np.uint8)
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

    def _grainy(self, number: int, color: tuple[int, int, int], shrink: int = 1) -> Image:
        grain = self._grains[number % GRAINS][::shrink, ::shrink]
        return np.asarray(grain + np.array(color, np.uint8) - np.uint8(GRAIN), np.uint8)

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
