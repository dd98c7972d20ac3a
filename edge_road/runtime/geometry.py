"""Does the model know such pictures? Their distance to the class centroids that the loss has learnt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edge_road.bundle import Artefact
from edge_road.frames import Floats

LEAST_RADIUS = 1e-6


class Geometry:
    """The centroids of one artefact, and the radii within which 99 % of its training pictures lie."""

    def __init__(self, centroids: Sequence[Sequence[float]], radii: Sequence[float]) -> None:
        self._centroids_CD = np.asarray(centroids, np.float32)
        self._radii_C = np.maximum(np.asarray(radii, np.float32), LEAST_RADIUS)

    @classmethod
    def of(cls, artefact: Artefact) -> Geometry:
        return cls(artefact.centroids, artefact.radii)

    def distances_N(self, features_ND: Floats) -> Floats:
        """To the nearest class, in units of its radius; NaN stays NaN."""
        offsets_NCD = features_ND[:, None, :] - self._centroids_CD
        return np.asarray((np.linalg.norm(offsets_NCD, axis=2) / self._radii_C).min(axis=1), np.float32)
