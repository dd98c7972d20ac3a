"""A camera behind GStreamer: a child process that sends raw pictures through a pipe, and can be killed."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

import cv2
import numpy as np

from edge_road.clock import Clock
from edge_road.errors import CameraError
from edge_road.frames import Frame, Image
from edge_road.logs import safe_text
from edge_road.runtime.sources.base import stamped
from edge_road.runtime.vehicle_sources import CsiSource

PROGRAM = "gst-launch-1.0"
FIRST_FRAME_S = 5.0
SILENT_S = 1.0
KILL_S = 0.5
PIPE_BYTES = 2**20
_F_SETPIPE_SZ = 1031
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def csi_pipeline(settings: CsiSource) -> list[str]:
    """As arguments of the program, never as a shell's text; every value in it is a number.

    On a Jetson the picture stays in the camera's memory (NVMM) until it has been scaled by hardware.
    """
    rate = f"{round(settings.fps * 1000)}/1000"
    size = f"width={settings.width},height={settings.height}"
    sensor = f"width={settings.sensor_width},height={settings.sensor_height}"
    if settings.pipeline == "test":
        steps = [
            ["videotestsrc", "is-live=true", "pattern=smpte", "horizontal-speed=3"],
            [f"video/x-raw,format=I420,{size},framerate={rate}"],
        ]
    else:
        steps = [
            ["nvarguscamerasrc", f"sensor-id={settings.sensor}"],
            [f"video/x-raw(memory:NVMM),format=NV12,{sensor},framerate={rate}"],
            ["nvvidconv", f"flip-method={settings.flip}"],
            [f"video/x-raw,format=I420,{size}"],
        ]
    steps += [
        ["queue", "leaky=downstream", "max-size-buffers=1"],
        ["fdsink", "fd=1", "sync=false"],
    ]
    return [word for step in steps for word in (*step, "!")][:-1]


class CsiCamera:
    live = True
    origin_ns = 0
    rejected = 0

    def __init__(self, settings: CsiSource, clock: Clock) -> None:
        kind = f"CSI camera {settings.sensor}" if settings.pipeline == "argus" else "GStreamer's test picture"
        self.description = f"{kind}, {settings.width} x {settings.height}"
        self.period_s = 1 / settings.fps
        self._settings, self._clock = settings, clock
        self._child: RawVideoChild | None = None
        self._number = 0

    def open(self) -> None:
        size = (self._settings.height * 3 // 2, self._settings.width)
        self._child = RawVideoChild(csi_pipeline(self._settings), size, self.description)
        self.origin_ns = self._clock.mono_ns()
        self._silent_after_ns = self.origin_ns + round(FIRST_FRAME_S * 1e9)

    def read(self, deadline_ns: int) -> Frame | None:
        assert self._child is not None
        planes = self._child.read((deadline_ns - self._clock.mono_ns()) / 1e9)
        now_ns = self._clock.mono_ns()
        if planes is None:
            if now_ns > self._silent_after_ns:
                raise CameraError("the camera sends no pictures", where=self.description)
            return None
        self._silent_after_ns = now_ns + round(SILENT_S * 1e9)
        self._number += 1
        pixels = np.asarray(cv2.cvtColor(planes, cv2.COLOR_YUV2RGB_I420), np.uint8)
        return stamped(pixels, self._number, now_ns, self._clock)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


class RawVideoChild:
    """Pictures of one fixed size, one after the other, on the child's standard output."""

    def __init__(self, pipeline: Sequence[str], size: tuple[int, int], description: str) -> None:
        self._description, self._size = description, size
        self._picture = bytearray(size[0] * size[1])
        self._filled = 0
        self._most_waiting = 2 + PIPE_BYTES // len(self._picture)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = self._start([_program(), "-q", *pipeline])
        assert self._process.stdout is not None
        self._pipe = self._process.stdout.fileno()
        os.set_blocking(self._pipe, False)
        with suppress(OSError):  # beyond what the system grants; a smaller one is only slower
            fcntl.fcntl(self._pipe, _F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self, timeout_s: float) -> Image | None:
        """The newest whole picture; none when it has not come in time (what has come is kept)."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        if not poll.poll(max(0.0, timeout_s) * 1000):
            return None
        newest = None
        for _ in range(self._most_waiting):
            if not self._fill():
                break
            newest = bytes(self._picture)
        return None if newest is None else np.frombuffer(newest, np.uint8).reshape(self._size)

    def _fill(self) -> bool:
        """Whether the next picture is whole by what is there."""
        while self._filled < len(self._picture):
            try:
                count = os.readv(self._pipe, [memoryview(self._picture)[self._filled :]])
            except BlockingIOError:
                return False
            if count == 0:
                raise CameraError("GStreamer has ended", where=self._description, got=self._last_words())
            self._filled += count
        self._filled = 0
        return True

    def close(self) -> None:
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # stuck in the kernel; it is not waited for
            self._process.wait(KILL_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )
        except OSError as error:
            raise CameraError("GStreamer cannot be started", got=error.strerror) from None

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read(4096).decode("utf-8", "replace").split("\n")
        said = " ".join(line.strip() for line in lines if "ERROR" in line or "WARNING" in line)
        return safe_text(said[:300]) or f"exit code {self._process.poll()}"


def _program() -> str:
    path = shutil.which(PROGRAM)
    if path is None:
        raise CameraError(
            f"{PROGRAM} is not installed", fix="apt install gstreamer1.0-tools (part of JetPack)"
        )
    return path


def _die_with_parent() -> None:
    """A worker that is killed must not leave a process that holds the camera."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
