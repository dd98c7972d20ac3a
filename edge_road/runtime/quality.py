"""Is this picture fit to be judged? Pure checks on a few numbers taken from it (`look.py`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import Field

from edge_road.config import StrictModel

EXPOSURE, LOW_DETAIL, BLURRED, NOISE, FROZEN = "exposure", "low_detail", "blurred", "noise", "frozen"
FRAME_SIZE, TIMESTAMP, OBSTRUCTED, DECODE = "frame_size", "timestamp", "obstructed", "decode"
PROBLEMS = (EXPOSURE, LOW_DETAIL, BLURRED, NOISE, FROZEN, FRAME_SIZE, TIMESTAMP, OBSTRUCTED, DECODE)
LEAST_SIDE = 16
"""pixels; nothing can be told of a smaller picture"""
FEW_FRAMES, FEW_FRAMES_S = 3, 0.5
"""so few equal pictures mean a frozen camera too, if they last this much longer: the camera is slow"""
LONGEST_GAP_S = 1.5
"""pictures further apart than this: the camera was away, and nobody knows what the lens showed"""


class QualitySettings(StrictModel):
    dark_level: int = Field(default=16, ge=0, le=255)
    """grey level below which a point counts as dark"""
    bright_level: int = Field(default=250, ge=0, le=255)
    """grey level from which a point counts as bright"""
    clipped_share: float = Field(default=0.97, gt=0, le=1)
    """share of points beyond one of the levels that makes a picture useless"""
    least_detail: float = Field(default=0.6, ge=0)
    """mean step in grey levels from point to point; a covered lens has next to none"""
    least_sharpness: float = Field(default=0.045, ge=0)
    """the steepest steps over 1/320 of the width, as a share of the picture's range of grey levels"""
    least_structure: float = Field(default=1.35, ge=0)
    """spread of the cells' brightness, in units of what pure noise would give (1); scenes have 2 to 8"""
    blind_detail: float = Field(default=0.3, ge=0)
    """mean fine step of a cell that shows nothing: dirt, a drop, a sticker"""
    blind_share: float = Field(default=0.5, gt=0, le=1)
    """share of such cells that makes a region useless"""
    obstructed_s: float = Field(default=3.0, ge=0)
    """after this long; time without pictures does not count, nor at a standstill when the speed is known"""
    frozen_frames: int = Field(default=10, ge=2)
    """so many equal pictures in a row mean a frozen camera"""
    frozen_s: float = Field(default=1.0, ge=0)
    """if they also last this long; of a slow camera three are enough, if they last 0.5 s longer"""
    frozen_share: float = Field(default=0.1, ge=0, lt=1)
    """share of its tiles that may differ in an equal picture: a clock goes on when the camera stands still"""
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
    sharpness: float
    structure: float
    fingerprint: tuple[int, ...]
    """one number for the bytes of each tile"""
    blind: tuple[float, ...] = ()
    """of each region, the share of cells that show nothing"""


@dataclass(frozen=True)
class Seen:
    """What is remembered from frame to frame."""

    captured_mono_ns: int | None = None
    size: tuple[int, int] | None = None
    new_size: tuple[int, int] | None = None
    new_size_ns: int = 0
    fingerprint: tuple[int, ...] = ()
    """of the first of the equal frames: small changes that go on and on add up against it"""
    identical: int = 0
    """frames in a row with the same bytes"""
    identical_ns: int = 0
    """when the first of them was taken"""
    blind_s: tuple[float, ...] = ()
    """how long each region has shown nothing"""


@dataclass(frozen=True)
class Verdict:
    problems: tuple[str, ...]
    """of the whole picture"""
    obstructed: tuple[bool, ...] = ()
    """each region"""


def check(seen: Seen, look: Look, settings: QualitySettings, standing: bool = False) -> tuple[Seen, Verdict]:
    """What is now remembered, and what is wrong with this picture."""
    if seen.captured_mono_ns is not None and look.captured_mono_ns <= seen.captured_mono_ns:
        return seen, Verdict((TIMESTAMP,))
    seen = _remember(seen, look, settings, standing)
    obstructed = tuple(blind_s >= settings.obstructed_s > 0 for blind_s in seen.blind_s)
    problems = {
        FRAME_SIZE: look.size != seen.size or min(look.size) < LEAST_SIDE,
        _emptiness(look, settings): True,
        FROZEN: _is_frozen(seen, settings),
        OBSTRUCTED: bool(obstructed) and all(obstructed),
    }
    return seen, Verdict(tuple(name for name, found in problems.items() if name and found), obstructed)


def _emptiness(look: Look, settings: QualitySettings) -> str | None:
    """Why the picture shows no scene: the first of the causes, because each brings the later ones along."""
    if max(look.dark, look.bright) >= settings.clipped_share:
        return EXPOSURE
    if look.detail < settings.least_detail:
        return LOW_DETAIL
    if look.sharpness < settings.least_sharpness:
        return BLURRED
    return NOISE if look.structure < settings.least_structure else None


def _remember(seen: Seen, look: Look, settings: QualitySettings, standing: bool) -> Seen:
    now_ns = look.captured_mono_ns
    blind_s = _remember_blind(seen, look, settings, standing)
    seen = replace(_remember_size(seen, look, settings), captured_mono_ns=now_ns, blind_s=blind_s)
    if _is_equal(look.fingerprint, seen.fingerprint, settings):
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


def _remember_blind(seen: Seen, look: Look, settings: QualitySettings, standing: bool) -> tuple[float, ...]:
    past_s = seen.blind_s or (0.0,) * len(look.blind)
    last_ns = look.captured_mono_ns if seen.captured_mono_ns is None else seen.captured_mono_ns
    gap_s = (look.captured_mono_ns - last_ns) / 1e9
    if standing or gap_s > LONGEST_GAP_S:
        gap_s = 0.0
    return tuple(
        before_s + gap_s if share >= settings.blind_share else 0.0
        for before_s, share in zip(past_s, look.blind)
    )


def _is_equal(now: tuple[int, ...], first: tuple[int, ...], settings: QualitySettings) -> bool:
    changed = [tile != before for tile, before in zip(now, first)]
    return bool(changed) and sum(changed) <= settings.frozen_share * len(changed)


def _is_frozen(seen: Seen, settings: QualitySettings) -> bool:
    assert seen.captured_mono_ns is not None
    lasted_s = (seen.captured_mono_ns - seen.identical_ns) / 1e9
    many = seen.identical >= settings.frozen_frames and lasted_s >= settings.frozen_s
    return many or (seen.identical >= FEW_FRAMES and lasted_s >= settings.frozen_s + FEW_FRAMES_S)
