"""Every error a user can meet, with the exit code that a script returns for it.

EdgeRoadError        70   our bug, unless a subclass says otherwise
├── ConfigError       2   recipe, target, vehicle, command line
│   ├── DataError     2   images, folders, labels, splits
│   └── TrainingError 2   a training that has gone astray, such as a loss that is not a number
├── BundleError       3   a bundle that is missing, cut, changed or not ours
├── BackendError      4   a model or engine that cannot run here
│   └── DeviceError   4   a GPU or disk that fails now: no verdict on the model
├── CameraError       5   a source of frames that cannot be opened or has ended
└── GateRefused       6   an artefact that does not meet its limits
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EdgeRoadError(Exception):
    """Says what went wrong, where, what was got, what was expected, and what to do."""

    exit_code = 70

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        got: object = None,
        expected: object = None,
        fix: str | None = None,
    ) -> None:
        self.what = what
        details = {"where": where, "got": got, "expected": expected, "to do": fix}
        self.details = {name: str(value) for name, value in details.items() if value is not None}
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what, *(f"  {name + ':':<10}{text}" for name, text in self.details.items())]
        return "\n".join(lines)


class ConfigError(EdgeRoadError):
    exit_code = 2


class DataError(ConfigError):
    pass


class TrainingError(ConfigError):
    pass


class BundleError(EdgeRoadError):
    exit_code = 3


class BackendError(EdgeRoadError):
    exit_code = 4


class DeviceError(BackendError):
    pass


class CameraError(EdgeRoadError):
    exit_code = 5


class GateRefused(EdgeRoadError):
    exit_code = 6


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that `name` was probably meant to be."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def suggestion(name: str, known: Iterable[str]) -> str | None:
    match = nearest(name, known)
    return f"did you mean '{match}'?" if match else None
