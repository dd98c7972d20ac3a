"""When a new model may take over from the one that runs, and when it has to go again. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from edge_road.conditions import STATES, UNKNOWN
from edge_road.config import StrictModel
from edge_road.runtime.decision import MODEL_OUTPUT, DecisionSettings, fuse, is_distribution
from edge_road.runtime.evidence import Evidence

DISAGREES, TOO_SLOW, TOO_FEW_FRAMES = "disagrees", "too_slow", "too_few_frames"
SLOWER = 1.5
"""times the time of the model before it, when that is slower than the camera already"""
SICK_FRAMES = 3
RECENT = 20
"""answers that tell the model's time on probation"""


class SwapSettings(StrictModel):
    """How a new bundle proves itself while the old one still speaks."""

    canary_s: float = Field(default=10.0, gt=0, le=600)
    """it judges live frames beside the old one for this long"""
    least_frames: int = Field(default=30, ge=1, le=10_000)
    """usable frames that it must have judged by then"""
    longest_s: float = Field(default=120.0, gt=0, le=3600)
    """to find that many usable frames; then it is refused"""
    least_agreement: float = Field(default=0.9, ge=0, le=1)
    """share of frames on which it must say what the old one says; where that is unknown, it is free"""
    trial_s: float = Field(default=60.0, gt=0, le=3600)
    """after the swap, the old model waits in memory and returns when the new one misbehaves"""


def said(evidence: Evidence, confidence: float, settings: DecisionSettings) -> str:
    """What this one frame says by itself: a state, unknown, or model_output for no answer at all."""
    judged = [region for region in evidence.regions if not region.obstructed]
    observed = fuse(judged, settings.fusion)
    if not is_distribution(observed):
        return MODEL_OUTPUT
    familiar = min(region.distance for region in judged) <= settings.familiar_radii
    if not (familiar and max(observed) >= confidence):
        return UNKNOWN
    return STATES[observed.index(max(observed))]


def usual_ms(times_ms: Sequence[float]) -> float:
    """The lower quartile: what else the machine does makes single answers late, never early."""
    return sorted(times_ms)[len(times_ms) // 4]


class Canary:
    """What two models say of the same frames, and how long each takes."""

    def __init__(self, settings: SwapSettings, period_s: float) -> None:
        self._settings, self._period_ms = settings, 1e3 * period_s
        self._agreed = self._sick = 0
        self._live_ms: list[float] = []
        self._candidate_ms: list[float] = []

    def add(self, live: str, candidate: str, live_ms: float, candidate_ms: float) -> None:
        self._sick += candidate == MODEL_OUTPUT
        self._agreed += candidate == live or (live in (UNKNOWN, MODEL_OUTPUT) and candidate != MODEL_OUTPUT)
        self._live_ms.append(live_ms)
        self._candidate_ms.append(candidate_ms)

    @property
    def frames(self) -> int:
        return len(self._candidate_ms)

    @property
    def slowest_ms(self) -> float:
        """More than this and frames would be dropped that were not dropped before."""
        live_ms = usual_ms(self._live_ms) if self._live_ms else 0.0
        return max(self._period_ms, SLOWER * live_ms)

    def figures(self) -> dict[str, float]:
        if not self.frames:
            return {"frames": 0}
        return {
            "frames": self.frames,
            "agreement": round(self._agreed / self.frames, 4),
            "live_ms": round(usual_ms(self._live_ms), 3),
            "candidate_ms": round(usual_ms(self._candidate_ms), 3),
            "slowest_ms": round(self.slowest_ms, 3),
        }

    def verdict(self, elapsed_s: float) -> str | None:
        """A reason to refuse it, an empty one when it has passed, none while it is too early to tell."""
        if self._sick:
            return MODEL_OUTPUT
        if elapsed_s < self._settings.canary_s:
            return None
        if self.frames < self._settings.least_frames:
            return None if elapsed_s < self._settings.longest_s else TOO_FEW_FRAMES
        if self._agreed < self._settings.least_agreement * self.frames:
            return DISAGREES
        return TOO_SLOW if usual_ms(self._candidate_ms) > self.slowest_ms else ""


class Probation:
    """The first minute of a new model in charge."""

    def __init__(self, until_ns: int, slowest_ms: float) -> None:
        self.until_ns, self._slowest_ms = until_ns, slowest_ms
        self._sick = 0
        self._recent_ms: list[float] = []

    def misbehaves(self, evidence: Evidence, settings: DecisionSettings) -> str | None:
        """Why the old model has to return; none while there is no reason."""
        if evidence.problems:
            return None
        self._sick += said(evidence, 0.0, settings) == MODEL_OUTPUT
        self._recent_ms = [*self._recent_ms[1 - RECENT :], evidence.stage_ms.get("predict", 0.0)]
        if self._sick >= SICK_FRAMES:
            return MODEL_OUTPUT
        slow = len(self._recent_ms) == RECENT and usual_ms(self._recent_ms) > self._slowest_ms
        return TOO_SLOW if slow else None
