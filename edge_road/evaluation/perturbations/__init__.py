"""What befalls a picture between road and model, as seeded functions of (image, generator).

They act on uint8 RGB at model size, keep its shape, and are found by name: see `registry`.
"""

from edge_road.evaluation.perturbations.families import (
    COMMON,
    DIALS,
    FAMILIES,
    ROAD,
    SEVERITIES,
    Family,
    Perturbation,
)
from edge_road.evaluation.perturbations.registry import (
    CLEAN,
    PERTURBATIONS,
    SUITES,
    expand,
    find_perturbation,
    perturb,
    perturbation,
)

__all__ = [
    "CLEAN",
    "COMMON",
    "DIALS",
    "FAMILIES",
    "PERTURBATIONS",
    "ROAD",
    "SEVERITIES",
    "SUITES",
    "Family",
    "Perturbation",
    "expand",
    "find_perturbation",
    "perturb",
    "perturbation",
]
