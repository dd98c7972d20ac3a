"""Leaves a small JPEG of what the camera sees for the live page, a few times a second at most."""

from __future__ import annotations

import logging

import cv2

from edge_road.clock import Clock, SystemClock
from edge_road.frames import Image
from edge_road.runtime.snapshot import snapshot_path, write_snapshot
from edge_road.runtime.vehicle import Vehicle

log = logging.getLogger(__name__)

PERIOD_NS = 200_000_000
LARGEST_WIDTH_PX = 640
QUALITY = 75


class Preview:
    def __init__(self, vehicle: Vehicle, clock: Clock | None = None) -> None:
        self._path = snapshot_path(vehicle)
        self._clock = clock or SystemClock()
        self._next_ns = 0

    def show(self, image: Image) -> None:
        """What goes wrong here is logged: the road comes first."""
        now_ns = self._clock.mono_ns()
        if self._path is None or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + PERIOD_NS
        try:
            write_snapshot(self._path, encode(image))
        except OSError as error:
            log.warning("the picture for the page cannot be written: %s", error)


def encode(image: Image) -> bytes:
    height, width = image.shape[:2]
    scale = min(1.0, LARGEST_WIDTH_PX / width)
    size = (round(width * scale), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA) if scale < 1 else image
    _, jpeg = cv2.imencode(".jpg", small[..., ::-1], (cv2.IMWRITE_JPEG_QUALITY, QUALITY))
    return bytes(jpeg)
