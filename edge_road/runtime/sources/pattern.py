"""Coded pictures for the fake backend, with scripted faults, to rehearse what a camera can do."""

from __future__ import annotations

import numpy as np

from edge_road.backends.fake import LEVEL_OF_STATE, NAN_COLOR
from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Image
from edge_road.runtime.sources.drive import DriveSource, write_truth
from edge_road.runtime.vehicle import PatternFault, PatternSource

NOISE = 12


class PatternCamera(DriveSource):
    def __init__(self, settings: PatternSource, clock: Clock, origin_ns: int | None = None) -> None:
        self._settings = settings
        seconds = sum(segment.seconds for segment in settings.segments)
        description = f"test pattern, {seconds:g} s at {settings.fps:g} fps"
        super().__init__(clock, settings.fps, seconds, settings.loop, origin_ns, description)

    def open(self) -> None:
        super().open()
        write_truth(self._settings.truth, self.origin_ns, self._settings.segments)

    def picture(self, number: int) -> Image | None:
        elapsed_s = (self._clock.mono_ns() - self.origin_ns) / 1e9
        fault = next((f for f in self._settings.faults if f.at <= elapsed_s < f.at + f.seconds), None)
        if fault is None:
            return self._plain(number)
        return self._faulty(fault, number)

    def _plain(self, number: int, size: tuple[int, int] | None = None) -> Image:
        height, width = size or (self._settings.height, self._settings.width)
        noise = np.random.default_rng(number).integers(-NOISE, NOISE + 1, (height, width, 1))
        level = LEVEL_OF_STATE[self._state_at(number / self._fps)]
        return np.repeat((noise + level).astype(np.uint8), 3, axis=2)

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
            return self._plain(number, (self._settings.height // 2, self._settings.width // 2))
        if fault.kind == "nan":
            return np.asarray(self._plain(number) % 2 + NAN_COLOR, np.uint8)
        return np.full(shape, 0 if fault.kind == "black" else 255, np.uint8)
