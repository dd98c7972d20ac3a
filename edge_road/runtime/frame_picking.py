"""Which frames are worth keeping for the next training: doubts, and changes of the answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from edge_road.conditions import STATES, UNKNOWN
from edge_road.config import StrictModel
from edge_road.preprocess import Crop
from edge_road.runtime.decision import DecisionSettings
from edge_road.runtime.evidence import Evidence
from edge_road.runtime.swap_rules import said

UNCERTAIN, CHANGED = "uncertain", "changed"


class KeepSettings(StrictModel):
    """Frames for the next training. Pictures may show people: off until a folder is named."""

    folder: Path | None = None
    """where they go; none: nothing is kept"""
    most_mb: float = Field(default=512.0, gt=0, le=1_000_000)
    """of pictures; the oldest go first"""
    most_days: float = Field(default=30.0, gt=0, le=3650)
    """older ones are removed"""
    every_s: float = Field(default=2.0, ge=0)
    """at least from one picture to the next"""
    whole: bool = False
    """keep whole pictures, not only the part of the road that is judged"""
    position: bool = False
    """write down where it was"""
    quality: int = Field(default=95, ge=50, le=100)
    """of the JPEG"""


class Picker:
    """Remembers what was said last, and when a picture was picked last."""

    def __init__(self, settings: KeepSettings, decision: DecisionSettings) -> None:
        self._settings, self._decision = settings, decision
        self._said: str | None = None
        self._picked_ns: int | None = None

    def reason(self, evidence: Evidence, confidence: float) -> str | None:
        """Why this frame is worth keeping; none when it is like the ones before."""
        if evidence.problems:
            return None
        own = self._decision.confidence
        answer = said(evidence, confidence if own is None else own, self._decision)
        before, self._said = self._said, answer
        if not self._is_due(evidence.captured_mono_ns):
            return None
        reason = (
            UNCERTAIN if answer not in STATES else CHANGED if before in STATES and answer != before else None
        )
        if reason is not None:
            self._picked_ns = evidence.captured_mono_ns
        return reason

    def _is_due(self, now_ns: int) -> bool:
        return self._picked_ns is None or now_ns - self._picked_ns >= self._settings.every_s * 1e9


def enclosing(crops: Sequence[Crop]) -> Crop:
    """The smallest part of the picture that holds all of them."""
    return Crop(
        left=min(crop.left for crop in crops),
        top=min(crop.top for crop in crops),
        right=max(crop.right for crop in crops),
        bottom=max(crop.bottom for crop in crops),
    )


def most_probable(evidence: Evidence) -> str:
    """For the name of the picture; what the model would have said, sure or not."""
    sums = [sum(region.probabilities[n] for region in evidence.regions) for n in range(len(STATES))]
    return STATES[sums.index(max(sums))] if max(sums) > 0 else UNKNOWN
