"""The robustness self-test: does a bundle keep, on this machine, what it kept where it was made?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edge_road.bundle import Probe
from edge_road.config import StrictModel
from edge_road.evaluation.metrics import accuracy, said
from edge_road.evaluation.perturbations import CLEAN, perturb
from edge_road.predictor import Predictor

# A few seconds on a vehicle: one of each kind, none so hard that chance decides.
SMOKE_TESTS = (
    CLEAN,
    "gaussian_10",
    "gaussian_30",
    "gaussian_40",
    "occlusion",
    "down_up",
    "stripes",
    "jpeg",
    "motion_blur",
    "dark",
)
TOLERANCE = 0.1
"""Arithmetic differs between machines, and a frame on the fence may fall to the other side."""


class SmokeVerdict(StrictModel):
    accuracies: dict[str, float]
    limits: dict[str, float]

    @property
    def breaches(self) -> tuple[str, ...]:
        """A limit that was not measured is breached too."""
        return tuple(name for name, limit in self.limits.items() if not self._keeps(name, limit))

    @property
    def passed(self) -> bool:
        """Nothing demanded is nothing shown."""
        return bool(self.limits) and not self.breaches

    def _keeps(self, name: str, limit: float) -> bool:
        return self.accuracies.get(name, -1.0) >= limit


def smoke_accuracies(
    predictor: Predictor, probe: Probe, seed: int = 0, tests: Iterable[str] = SMOKE_TESTS
) -> dict[str, float]:
    return {name: _smoke_accuracy(predictor, probe, name, seed) for name in tests}


def smoke_limits(accuracies: Mapping[str, float]) -> dict[str, float]:
    """The least that every machine must reach, from what was measured at export."""
    return {name: round(max(0.0, value - TOLERANCE), 4) for name, value in accuracies.items()}


def _smoke_accuracy(predictor: Predictor, probe: Probe, name: str, seed: int) -> float:
    images_NHWC = probe.images_NHWC
    if name != CLEAN:
        images_NHWC = perturb(images_NHWC, name, seed, run=0)
    return accuracy(probe.labels_N, said(predictor.predict(images_NHWC)))
