"""The few calls of the kernel's video interface (V4L2, linux/videodev2.h) that a camera needs."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from contextlib import suppress
from dataclasses import dataclass

# Layouts of 64-bit Linux.
_CAPABILITY = struct.Struct("16s32s32sIII12x")
_FORMAT = struct.Struct("I4xIIII184x")  # type; width, height, pixel format, field; the rest is the driver's
_PARAMETERS = struct.Struct("IIIII184x")  # type; capability, mode, seconds per frame as a fraction
_REQUEST = struct.Struct("IIII4x")
_BUFFER = struct.Struct("IIIII4xqq16xIIQI12x")


def _call(direction: int, number: int, size: int) -> int:
    return direction << 30 | size << 16 | ord("V") << 8 | number


_READ_WRITE = 3
QUERY_CAPABILITY = _call(2, 0, _CAPABILITY.size)
SET_FORMAT = _call(_READ_WRITE, 5, _FORMAT.size)
SET_PARAMETERS = _call(_READ_WRITE, 22, _PARAMETERS.size)
REQUEST_BUFFERS = _call(_READ_WRITE, 8, _REQUEST.size)
QUERY_BUFFER = _call(_READ_WRITE, 9, _BUFFER.size)
QUEUE = _call(_READ_WRITE, 15, _BUFFER.size)
DEQUEUE = _call(_READ_WRITE, 17, _BUFFER.size)
STREAM_ON, STREAM_OFF = _call(1, 18, 4), _call(1, 19, 4)

CAPTURE, MMAP, ANY_FIELD = 1, 1, 0
CAN_CAPTURE, CAN_STREAM, HAS_DEVICE_CAPABILITIES = 0x1, 0x04000000, 0x80000000
ERROR, MONOTONIC = 0x40, 0x2000
"""flags of a buffer: its content is damaged; its time is that of the monotonic clock"""
MJPEG, YUYV = (int.from_bytes(code, "little") for code in (b"MJPG", b"YUYV"))
BUFFERS = 4


@dataclass(frozen=True)
class Captured:
    content: bytes
    captured_mono_ns: int | None
    """when the driver took it; none when it does not tell"""
    damaged: bool


class Device:
    """An open device whose every call returns at once; OSError is the caller's."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._memory: list[mmap.mmap] = []

    def fileno(self) -> int:
        return self._descriptor

    def capabilities(self) -> int:
        answer = bytearray(_CAPABILITY.size)
        fcntl.ioctl(self._descriptor, QUERY_CAPABILITY, answer)
        _, _, _, _, all_of_them, of_this_node = _CAPABILITY.unpack(answer)
        return int(of_this_node if all_of_them & HAS_DEVICE_CAPABILITIES else all_of_them)

    def set_format(self, width: int, height: int, pixels: int) -> tuple[int, int, int]:
        """What the driver gives instead: width, height, pixel format."""
        answer = bytearray(_FORMAT.pack(CAPTURE, width, height, pixels, ANY_FIELD))
        fcntl.ioctl(self._descriptor, SET_FORMAT, answer)
        _, width, height, pixels, _ = _FORMAT.unpack(answer)
        return width, height, pixels

    def set_rate(self, fps: float) -> float:
        answer = bytearray(_PARAMETERS.pack(CAPTURE, 0, 0, 1000, round(fps * 1000)))
        try:
            fcntl.ioctl(self._descriptor, SET_PARAMETERS, answer)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTTY):  # a driver with one rate only
                return fps
            raise
        _, _, _, numerator, denominator = _PARAMETERS.unpack(answer)
        return denominator / numerator if numerator and denominator else fps

    def start(self) -> None:
        request = bytearray(_REQUEST.pack(BUFFERS, CAPTURE, MMAP, 0))
        fcntl.ioctl(self._descriptor, REQUEST_BUFFERS, request)
        for index in range(min(BUFFERS, _REQUEST.unpack(request)[0])):
            answer = _empty_buffer(index)
            fcntl.ioctl(self._descriptor, QUERY_BUFFER, answer)
            *_, offset, length = _BUFFER.unpack(answer)
            self._memory.append(mmap.mmap(self._descriptor, length, offset=offset))
            fcntl.ioctl(self._descriptor, QUEUE, _empty_buffer(index))
        fcntl.ioctl(self._descriptor, STREAM_ON, struct.pack("i", CAPTURE))

    def take(self) -> Captured | None:
        """The oldest picture that waits, copied out of the driver's memory; none when there is none."""
        answer = _empty_buffer(0)
        try:
            fcntl.ioctl(self._descriptor, DEQUEUE, answer)
        except BlockingIOError:
            return None
        index, _, used, flags, _, seconds, microseconds, *_ = _BUFFER.unpack(answer)
        content = self._memory[index][: min(used, len(self._memory[index]))]
        fcntl.ioctl(self._descriptor, QUEUE, _empty_buffer(index))
        taken_ns = seconds * 10**9 + microseconds * 1000 if flags & MONOTONIC else None
        return Captured(content, taken_ns, bool(flags & ERROR))

    def close(self) -> None:
        with suppress(OSError):  # it is gone, or was never on
            fcntl.ioctl(self._descriptor, STREAM_OFF, struct.pack("i", CAPTURE))
        for memory in self._memory:
            memory.close()
        os.close(self._descriptor)


def _empty_buffer(index: int) -> bytearray:
    return bytearray(_BUFFER.pack(index, CAPTURE, 0, 0, 0, 0, 0, 0, MMAP, 0, 0))
