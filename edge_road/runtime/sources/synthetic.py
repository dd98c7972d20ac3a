"""A rendered drive as a camera."""

from __future__ import annotations

from edge_road.clock import Clock
from edge_road.frames import Image
from edge_road.runtime.sources.drive import DriveSource, write_truth
from edge_road.runtime.vehicle_sources import SyntheticSource
from edge_road.synthetic.drives import Drive, Segment, random_drive


class SyntheticDrive(DriveSource):
    def __init__(self, settings: SyntheticSource, clock: Clock, origin_ns: int | None = None) -> None:
        self._drive = _drive_for(settings)
        self._truth = settings.truth
        description = f"synthetic drive {settings.seed}, {self._drive.duration_s:g} s at {settings.fps:g} fps"
        super().__init__(clock, settings.fps, self._drive.duration_s, settings.loop, origin_ns, description)

    def open(self) -> None:
        super().open()
        write_truth(self._truth, self.origin_ns, [(s.state, s.seconds) for s in self._drive.segments])

    def picture(self, number: int) -> Image | None:
        return self._drive.frame(number)


def _drive_for(settings: SyntheticSource) -> Drive:
    fps, height, width = settings.fps, settings.height, settings.width
    if settings.random_s is not None:
        return random_drive(settings.seed, settings.random_s, fps, height, width)
    segments = tuple(Segment(segment.state, segment.seconds) for segment in settings.segments)
    return Drive(settings.seed, segments, fps, height, width)
