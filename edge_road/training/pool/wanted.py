"""What is asked of several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MEASURES = ("strangers", "curvature", "layers")
VEHICLE_LIMITS = (0.8, 1.5)
"""the largest confidence that an export asks for, and the radii that a vehicle file allows by default"""
REFERENCE = "softmax"


@dataclass(frozen=True)
class Wanted:
    measures: Sequence[str] = MEASURES
    images: int = 64
    """test pictures of each run for the curvature"""
    seed: int = 0
    limits: tuple[float, float] = VEHICLE_LIMITS
