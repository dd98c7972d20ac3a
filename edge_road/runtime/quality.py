"""Is this picture fit to be judged? Pure checks on a few numbers taken from it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import Field

from edge_road.config import StrictModel

if TYPE_CHECKING:  # the supervisor reads the settings below, but never looks at a picture
    import numpy as np
    import numpy.typing as npt

    from edge_road.frames import Frame, Image

EXPOSURE, LOW_DETAIL, FROZEN, FRAME_SIZE, TIMESTAMP = (
    "exposure",
    "low_detail",
    "frozen",
    "frame_size",
    "timestamp",
)
SAMPLES = 96
"""points looked at along each side"""


class QualitySettings(StrictModel):
    dark_level: int = Field(default=16, ge=0, le=255)
    bright_level: int = Field(default=250, ge=0, le=255)
    clipped_share: float = Field(default=0.97, gt=0, le=1)
    """share of points beyond one of the levels that makes a picture useless"""
    least_detail: float = Field(default=0.6, ge=0)
    """mean step in grey levels from point to point; a covered lens has next to none"""
    frozen_frames: int = Field(default=10, ge=2)
    frozen_s: float = Field(default=1.0, ge=0)
    resize_s: float = Field(default=1.0, ge=0)
    """a new picture size is accepted once it has lasted this long"""


@dataclass(frozen=True)
class Look:
    """What the checks need to know of a picture."""

    captured_mono_ns: int
    size: tuple[int, int]
    dark: float
    bright: float
    detail: float
    fingerprint: int


@dataclass(frozen=True)
class Seen:
    """What is remembered from frame to frame."""

    captured_mono_ns: int | None = None
    size: tuple[int, int] | None = None
    new_size: tuple[int, int] | None = None
    new_size_ns: int = 0
    fingerprint: int | None = None
    identical: int = 0
    """frames in a row with the same bytes"""
    identical_ns: int = 0
    """when the first of them was taken"""


def look_at(frame: Frame, settings: QualitySettings) -> Look:
    import numpy as np

    grey = _sampled_grey(frame.pixels)
    steps = np.abs(np.diff(grey, axis=0)).mean(), np.abs(np.diff(grey, axis=1)).mean()
    return Look(
        captured_mono_ns=frame.captured_mono_ns,
        size=(frame.pixels.shape[0], frame.pixels.shape[1]),
        dark=float((grey < settings.dark_level).mean()),
        bright=float((grey >= settings.bright_level).mean()),
        detail=float(max(steps)),
        fingerprint=zlib.crc32(frame.pixels[:: _stride(frame.pixels.shape[0])].tobytes()),
    )


def check(seen: Seen, look: Look, settings: QualitySettings) -> tuple[Seen, tuple[str, ...]]:
    """What is now remembered, and what is wrong with this picture."""
    if seen.captured_mono_ns is not None and look.captured_mono_ns <= seen.captured_mono_ns:
        return seen, (TIMESTAMP,)
    seen = _remember(seen, look, settings)
    problems = {
        FRAME_SIZE: look.size != seen.size,
        EXPOSURE: max(look.dark, look.bright) >= settings.clipped_share,
        LOW_DETAIL: look.detail < settings.least_detail,
        FROZEN: _is_frozen(seen, settings),
    }
    return seen, tuple(name for name, found in problems.items() if found)


def _remember(seen: Seen, look: Look, settings: QualitySettings) -> Seen:
    now_ns = look.captured_mono_ns
    seen = replace(_remember_size(seen, look, settings), captured_mono_ns=now_ns)
    if look.fingerprint == seen.fingerprint:
        return replace(seen, identical=seen.identical + 1)
    return replace(seen, fingerprint=look.fingerprint, identical=1, identical_ns=now_ns)


def _remember_size(seen: Seen, look: Look, settings: QualitySettings) -> Seen:
    if seen.size is None or look.size == seen.size:
        return replace(seen, size=look.size, new_size=None)
    if look.size != seen.new_size:
        return replace(seen, new_size=look.size, new_size_ns=look.captured_mono_ns)
    if look.captured_mono_ns - seen.new_size_ns < settings.resize_s * 1e9:
        return seen
    return replace(seen, size=look.size, new_size=None)


def _is_frozen(seen: Seen, settings: QualitySettings) -> bool:
    assert seen.captured_mono_ns is not None
    lasted_ns = seen.captured_mono_ns - seen.identical_ns
    return seen.identical >= settings.frozen_frames and lasted_ns >= settings.frozen_s * 1e9


def _sampled_grey(pixels: Image) -> npt.NDArray[np.int16]:
    """Green carries most of the brightness, and a plain copy is ten times as fast as a mean."""
    import numpy as np

    rows, columns = _stride(pixels.shape[0]), _stride(pixels.shape[1])
    return pixels[::rows, ::columns, 1].astype(np.int16)


def _stride(length: int) -> int:
    return max(1, length // SAMPLES)
