"""The file beside a bundle that tells how the gate judged, and what this machine needed for it.

edge_road.verify/1   verdicts and the seconds of each step
edge_road.verify/2   and time and memory of each model
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from edge_road.bundle import Precision
from edge_road.config import StrictModel
from edge_road.errors import BundleError
from edge_road.export.footprint import Footprint
from edge_road.export.gate import Check
from edge_road.files import write_atomically

NEWEST = "edge_road.verify/2"
_KNOWN = ("edge_road.verify/1", NEWEST)
_COMPUTED = ("passed", "left_to_chance")


class VerifyOf(StrictModel):
    """One model."""

    released: bool
    reasons: tuple[str, ...]
    checks: tuple[Check, ...]
    machine: tuple[Check, ...] = ()
    footprint: Footprint | None = None
    """of the machine that exported"""


class VerifyFile(StrictModel):
    schema_name: Literal["edge_road.verify/2"] = "edge_road.verify/2"
    bundle_digest: str
    target: str
    artefacts: dict[Precision, VerifyOf]
    steps_s: dict[str, float]

    def to_bytes(self) -> bytes:
        values = self.model_dump(mode="json")
        for name, judged in self.artefacts.items():
            for kind, checks in (("checks", judged.checks), ("machine", judged.machine)):
                for row, check in zip(values["artefacts"][name][kind], checks):
                    row |= {"passed": check.passed, "left_to_chance": check.forgiven}
        return (json.dumps(values, indent=2, allow_nan=False) + "\n").encode()


def verify_path(bundle: Path) -> Path:
    return bundle.with_name(f"{bundle.name}.verify.json")


def write_verify_file(bundle: Path, verdicts: VerifyFile) -> Path:
    path = verify_path(bundle)
    write_atomically(path, verdicts.to_bytes())
    return path


def read_verify_file(path: Path) -> VerifyFile:
    """Of any version up to ours."""
    try:
        values = json.loads(path.read_bytes())
        return VerifyFile.model_validate(_as_newest(values, path))
    except OSError as error:
        raise BundleError("there is no verdict to read", where=path, got=error.strerror) from None
    except (ValueError, ValidationError, TypeError, KeyError, AttributeError) as error:
        raise BundleError("the verdict cannot be read", where=path, got=error) from None


def _as_newest(values: dict[str, Any], path: Path) -> dict[str, Any]:
    refuse_unknown_schema(values.get("schema_name"), _KNOWN, path)
    for judged in values["artefacts"].values():
        for check in (*judged["checks"], *judged.get("machine", ())):
            for name in _COMPUTED:  # follow from the figures
                check.pop(name, None)
    return {**values, "schema_name": NEWEST}


def refuse_unknown_schema(found: object, known: tuple[str, ...], path: Path) -> None:
    if found in known:
        return
    family = known[0].partition("/")[0]
    newer = isinstance(found, str) and found.startswith(family)
    raise BundleError(
        "this file is of a newer kind" if newer else "this is not the file that it should be",
        where=path,
        got=found,
        expected=" or ".join(known),
        fix="update edge_road, or export the run again" if newer else None,
    )
