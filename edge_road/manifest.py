"""The manifest of a bundle: what it holds and promises, read strictly, in every version ever written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from edge_road.conditions import ClassList
from edge_road.config import StrictModel
from edge_road.errors import BundleError, EdgeRoadError
from edge_road.preprocess import Preprocessing
from edge_road.settings_errors import first_fault

MANIFEST_FILE = "manifest.json"
LARGEST_MANIFEST_BYTES = 8 * 2**20
DEEPEST = 24
"""of brackets inside brackets; a recipe has 4"""
MOST_FILES = 64

Precision = Literal["float32", "float16", "int8"]


class FileRecord(StrictModel):
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class Artefact(StrictModel):
    """One model file, and what the runtime must know of this very file."""

    file: str
    temperature: float = Field(gt=0)
    """already inside the graph: `probabilities` = softmax(logits / temperature)"""
    confidence_threshold: float = Field(ge=0, le=1)
    """below it the answer is `unknown`"""
    centroids: tuple[tuple[float, ...], ...]
    """mean feature of each class over the training images"""
    radii: tuple[float, ...]
    """distance to the own centroid that 99 % of the training images of each class stay within"""


class Calibration(StrictModel):
    """How the INT8 scales were found."""

    method: str
    images: int
    digest: str
    """sha256 over the calibration images as the model saw them"""


class Manifest(StrictModel):
    schema_version: Literal[1] = 1
    name: str
    version: str
    """of edge_road, when the bundle was written"""
    classes: tuple[str, ...]
    preprocessing: Preprocessing
    input_name: str
    input_shape: tuple[int, int, int, int]
    """batch, height, width, 3; a batch of 0 stands for any"""
    outputs: dict[str, tuple[int, ...]]
    """name -> shape without the batch: probabilities, logits, features"""
    artefacts: dict[Precision, Artefact]
    calibration: Calibration | None
    smoke_limits: dict[str, float]
    """perturbation -> least accuracy on the probe frames that this bundle must keep on any machine"""
    method: str
    seed: int
    recipe: dict[str, Any]
    recipe_digest: str
    data_digest: str
    git_commit: str | None
    files: dict[str, FileRecord] = Field(max_length=MOST_FILES)

    @property
    def class_list(self) -> ClassList:
        return ClassList(self.classes)

    @model_validator(mode="after")
    def _geometry_fits(self) -> Manifest:
        features = self.outputs.get("features", (0,))
        for precision, artefact in self.artefacts.items():
            sizes = {len(artefact.centroids), len(artefact.radii)}
            widths = {(len(centroid),) for centroid in artefact.centroids}
            if sizes != {len(self.classes)} or widths != {features}:
                raise ValueError(f"centroids and radii of {precision} do not fit the classes and features")
        return self


# How a manifest of version N becomes one of version N + 1. A vehicle outlives many versions, so a
# step is never removed.
Step = Callable[[dict[str, Any]], dict[str, Any]]
STEPS: dict[int, Step] = {}
NEWEST = 1


def manifest_bytes(manifest: Manifest) -> bytes:
    """One manifest, one text: sorted keys, no NaN."""
    values = manifest.model_dump(mode="json")
    return (json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def parse_manifest(raw: bytes, where: Path) -> Manifest:
    """Refuse, with a BundleError, whatever is not plainly a manifest that we could have written."""
    try:
        values = _strict_json(raw)
        manifest = Manifest.model_validate(_as_newest(values, where))
        manifest.class_list  # noqa: B018  (refuses classes without a road state)
    except BundleError:
        raise
    except (ValidationError, ValueError, RecursionError, EdgeRoadError) as error:
        text = first_fault(error) if isinstance(error, ValidationError) else str(error)[:2000]
        raise BundleError(
            "the manifest is not valid",
            where=where,
            got=text or type(error).__name__,
            fix="export the run again, or copy the bundle again",
        ) from None
    return manifest


def _as_newest(values: Any, where: Path) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise ValueError(f"a manifest is a JSON object, not {type(values).__name__}")
    version = values.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"schema_version is {version!r}")
    if version > NEWEST:
        raise BundleError(
            "the bundle is of a newer kind than this edge_road knows",
            where=where,
            got=f"schema version {version}",
            expected=f"{NEWEST} or older",
            fix="update edge_road on this machine",
        )
    upgraded: dict[str, Any] = values
    for step in range(version, NEWEST):
        upgraded = {**STEPS[step](upgraded), "schema_version": step + 1}
    return upgraded


def _strict_json(raw: bytes) -> Any:
    if len(raw) > LARGEST_MANIFEST_BYTES:
        raise ValueError(f"more than {LARGEST_MANIFEST_BYTES} bytes")
    values = json.loads(raw.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    _check_depth(values)
    return values


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two readers may differ in which of two equal keys they take, so neither is."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return values


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _check_depth(values: Any) -> None:
    level = [values]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    raise ValueError(f"nested deeper than {DEEPEST}")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
