"""A camera of the Linux kernel, read without waiting: every call has a deadline."""

from __future__ import annotations

import select

import cv2
import numpy as np

from edge_road.clock import Clock, utc_text
from edge_road.datasets.decode import decode_image
from edge_road.errors import CameraError, DataError
from edge_road.frames import Frame, Image
from edge_road.runtime.sources import v4l2_calls as v4l2
from edge_road.runtime.sources.base import RisingTimes, Unreadable
from edge_road.runtime.vehicle_sources import V4l2Source

SILENT_S = 1.0
OLDEST_S = 1.0
"""a driver's time stamp further in the past is not believed"""
PIXELS = {"mjpeg": (v4l2.MJPEG,), "yuyv": (v4l2.YUYV,), "auto": (v4l2.MJPEG, v4l2.YUYV)}


class V4l2Camera:
    live = True
    origin_ns = 0

    def __init__(self, settings: V4l2Source, clock: Clock) -> None:
        self.description = f"camera {settings.device}"
        self.period_s = 1 / settings.fps
        self.rejected = 0
        self._settings, self._clock = settings, clock
        self._device: v4l2.Device | None = None
        self._number = 0

    def open(self) -> None:
        try:
            self._device = v4l2.Device(self._settings.device)
            self._set_up(self._device)
        except OSError as error:
            raise self._trouble("the camera cannot be opened", error) from None
        self.origin_ns = self._heard_ns = self._clock.mono_ns()
        self._times = RisingTimes()

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        assert self._device is not None
        try:
            captured = self._newest(self._device, (deadline_ns - self._clock.mono_ns()) / 1e9)
        except OSError as error:
            raise self._trouble("the camera is lost", error) from None
        now_ns = self._clock.mono_ns()
        if captured is None:
            if now_ns - self._heard_ns > SILENT_S * 1e9:
                raise CameraError("the camera sends no pictures", where=self.description)
            return None
        self._heard_ns = now_ns
        taken_ns = captured.captured_mono_ns
        if taken_ns is None or not 0 <= now_ns - taken_ns <= OLDEST_S * 1e9:
            taken_ns = now_ns
        if not self._times.rises(taken_ns):
            self.rejected += 1
            return None
        return self._decoded(captured, taken_ns)

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    def _set_up(self, device: v4l2.Device) -> None:
        wanted = v4l2.CAN_CAPTURE | v4l2.CAN_STREAM
        if device.capabilities() & wanted != wanted:
            raise CameraError("the device is no camera that can stream", where=self.description)
        width, height = self._settings.width, self._settings.height
        choices = PIXELS[self._settings.pixels]
        for pixels in choices:
            self._width, self._height, self._pixels = device.set_format(width, height, pixels)
            if self._pixels == pixels:
                break
        else:
            got = self._pixels.to_bytes(4, "little").decode("latin-1")
            raise CameraError("the camera sends other pixels", where=self.description, got=repr(got))
        self.period_s = 1 / device.set_rate(self._settings.fps)
        self.description = f"camera {self._settings.device}, {self._width} x {self._height}"
        device.start()

    def _newest(self, device: v4l2.Device, timeout_s: float) -> v4l2.Captured | None:
        poll = select.poll()
        poll.register(device, select.POLLIN)
        if not poll.poll(max(0.0, timeout_s) * 1000):
            return None
        newest = None
        while (captured := device.take()) is not None:
            newest = captured
        return newest

    def _decoded(self, captured: v4l2.Captured, taken_ns: int) -> Frame | Unreadable:
        self._number += 1
        utc = utc_text(self._clock.utc())
        try:
            if captured.damaged:
                raise DataError("the driver marks the picture as damaged")
            return Frame(self._pixels_of(captured.content), self._number, taken_ns, utc)
        except DataError:
            self.rejected += 1
            return Unreadable(self._number, taken_ns, utc)

    def _pixels_of(self, content: bytes) -> Image:
        if self._pixels == v4l2.MJPEG:
            return decode_image(content.rstrip(b"\0"), self.description)
        if len(content) != self._width * self._height * 2:
            raise DataError("a raw picture that is cut", got=f"{len(content)} bytes")
        yuyv = np.frombuffer(content, np.uint8).reshape(self._height, self._width, 2)
        return np.asarray(cv2.cvtColor(yuyv, cv2.COLOR_YUV2RGB_YUYV), np.uint8)

    def _trouble(self, what: str, error: OSError) -> CameraError:
        return CameraError(what, where=self.description, got=error.strerror)
