"""A report on one or several artefacts: `report.json` for machines, `report.html` for people.

`report.json` is a `Report`. It holds no time and no path, so that equal measurements give equal bytes;
every share lies in [0, 1], and what was not measured is null. A reader must refuse a `schema` that
it does not know. Fields: docs/evaluation.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from edge_road import __version__
from edge_road.config import StrictModel
from edge_road.errors import ConfigError
from edge_road.evaluation.abstention import Abstention
from edge_road.evaluation.comparison import Comparison
from edge_road.evaluation.lab_result import LabResult
from edge_road.evaluation.mce import CorruptionErrors
from edge_road.evaluation.ood import OodResult
from edge_road.evaluation.reliability import Calibration
from edge_road.evaluation.scores import Evaluation
from edge_road.files import write_atomically
from edge_road.frames import Images
from edge_road.settings_errors import first_fault

JSON_FILE, HTML_FILE = "report.json", "report.html"


class Subject(StrictModel):
    """What was measured, and where it comes from."""

    name: str
    """of the run or bundle"""
    kind: Literal["run", "bundle"]
    sha256: str
    """of the weights or of the model file"""
    method: str
    seed: int
    """of the training"""
    recipe_digest: str
    git_commit: str | None
    version: str
    """of edge_road, when the subject was made"""


class PictureSet(StrictModel):
    """What it was measured on."""

    kind: str
    split: str
    digest: str
    as_trained: bool
    """False: other data than the subjects were trained, validated and tested on"""

    @property
    def which(self) -> str:
        return "all splits" if self.split == "all" else f"the {self.split} split"


class Entry(StrictModel):
    subject: Subject
    evaluation: Evaluation
    calibration: Calibration | None = None
    abstention: Abstention | None = None
    ood: OodResult | None = None
    mce: CorruptionErrors | None = None
    """against the baseline that was given"""
    lab: LabResult | None = None
    """of a run, where asked for"""

    @property
    def title(self) -> str:
        return f"{self.subject.name}, {self.evaluation.artefact}"


class Report(StrictModel):
    schema_name: Literal["edge_road.report/1", "edge_road.report/2"] = Field(
        default="edge_road.report/2", alias="schema"
    )
    """2 adds calibration, abstention, ood, mce, lab, notes and comparisons; 1 can still be read"""
    version: str = __version__
    """of edge_road, when it was measured"""
    test_set: PictureSet
    notes: tuple[str, ...] = ()
    """what limits the figures"""
    entries: tuple[Entry, ...] = Field(min_length=1)
    comparisons: tuple[Comparison, ...] = ()
    """of every other entry with the first"""

    def to_json(self) -> str:
        values = self.model_dump(mode="json", by_alias=True)
        return json.dumps(values, indent=2, allow_nan=False) + "\n"


def write_report(folder: Path, report: Report, pictures: Sequence[Images]) -> tuple[Path, Path]:
    """Both files; `pictures` are the clean images of each entry, at its model's size."""
    from edge_road.evaluation.page import render_page

    page = render_page(report, pictures)
    write_atomically(folder / JSON_FILE, report.to_json().encode())
    write_atomically(folder / HTML_FILE, page.encode())
    return folder / JSON_FILE, folder / HTML_FILE


def load_report(path: Path) -> Report:
    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError("the report cannot be read", where=path, got=error.strerror) from None
    except ValidationError as error:
        raise ConfigError("not a report of this version", where=path, got=first_fault(error)) from None
