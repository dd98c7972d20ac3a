"""From answers to the table: means over folds or seeds, and differences over pictures.

`table.json` is a `Comparison`. It holds no time and no path, so that equal measurements give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from edge_road import __version__
from edge_road.config import StrictModel
from edge_road.errors import DataError
from edge_road.evaluation.metrics import DangerRate, danger_rate
from edge_road.evaluation.page import title_of
from edge_road.evaluation.perturbations import CLEAN, find_perturbation
from edge_road.evaluation.significance import paired_bootstrap
from edge_road.training.compare.answers import Answers, conditions_of
from edge_road.training.compare.plan import Part

MEAN = "mean"
"""the condition that stands for the mean over all perturbations"""
Shares = npt.NDArray[np.float64]


class Difference(StrictModel):
    """To the reference, in accuracy over all pictures, with its 95 % paired-bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        return self.low > 0.0 or self.high < 0.0


class Cell(StrictModel):
    accuracy: float
    deviation: float | None
    """standard deviation over folds or seeds; none of a single one"""
    by_part: tuple[float, ...]
    difference: Difference | None
    """none for the reference itself"""
    danger: DangerRate | None
    """none where no picture shows an icy road"""


class Row(StrictModel):
    name: str
    cells: dict[str, Cell]


class Comparison(StrictModel):
    schema_name: Literal["edge_road.comparison/1"] = Field(default="edge_road.comparison/1", alias="schema")
    version: str = __version__
    recipe: str
    epochs: int
    part: Part
    parts: int
    pictures: int
    """different ones in all test sets"""
    runs: int
    """of every random perturbation"""
    reference: str
    conditions: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def gaussian(self) -> list[str]:
        """The columns of the paper's Table 3."""
        return [name for name in self.conditions if name == CLEAN or _is_gaussian(name)]

    @property
    def others(self) -> list[str]:
        """The columns of its Table 4, and the mean over both."""
        return [name for name in self.conditions if name not in self.gaussian]

    @property
    def everything(self) -> list[str]:
        """Clean and the mean first."""
        return sorted(self.conditions, key=lambda name: name not in (CLEAN, MEAN))

    def to_json(self) -> str:
        return json.dumps(self.model_dump(mode="json", by_alias=True), indent=2, allow_nan=False) + "\n"


def build_rows(answers: Mapping[str, Sequence[Answers]], reference: str) -> tuple[Row, ...]:
    """`answers` of each row, one for every fold or seed."""
    pooled = {name: _Pooled(parts) for name, parts in answers.items()}
    known = pooled[reference]
    for name, found in pooled.items():
        if found.keys.tolist() != known.keys.tolist():
            raise DataError(
                "two methods were not asked about the same pictures", got=name, expected=f"as {reference}"
            )
    return tuple(Row(name=name, cells=_cells(found, known)) for name, found in pooled.items())


class _Pooled:
    """All pictures of all parts, each once: a share of right answers over runs and seeds."""

    def __init__(self, parts: Sequence[Answers]) -> None:
        self.parts = parts
        names = np.array([key for part in parts for key in part.keys])
        self.keys, self._position_N, self._count_K = np.unique(names, return_inverse=True, return_counts=True)
        self.icy = int(self._mean([part.icy_N for part in parts]).sum())
        self.conditions = (CLEAN, *conditions_of(parts[0]))

    def right(self, condition: str) -> Shares:
        return self._mean([_right(part, condition) for part in self.parts])

    def missed(self, condition: str) -> float:
        names = self.conditions[1:] if condition == MEAN else (condition,)
        missed = [
            np.mean([part.missed_ice[name].mean(axis=0) for name in names], axis=0) for part in self.parts
        ]
        return float(self._mean(missed).sum())

    def _mean(self, values: Sequence[npt.NDArray[np.generic]]) -> Shares:
        sums_K = np.bincount(self._position_N, weights=np.concatenate(values).astype(np.float64))
        return np.asarray(sums_K / self._count_K)


def _right(answers: Answers, condition: str) -> Shares:
    """For each picture, over runs; for the mean, over perturbations as well."""
    names = conditions_of(answers) if condition == MEAN else [condition]
    return np.asarray(np.mean([answers.right[name].mean(axis=0) for name in names], axis=0))


def _cells(found: _Pooled, reference: _Pooled) -> dict[str, Cell]:
    names = [*found.conditions, MEAN] if len(found.conditions) > 1 else list(found.conditions)
    return {name: _cell(found, reference, name) for name in names}


def _cell(found: _Pooled, reference: _Pooled, condition: str) -> Cell:
    by_part = [float(_right(part, condition).mean()) for part in found.parts]
    return Cell(
        accuracy=float(np.mean(by_part)),
        deviation=float(np.std(by_part, ddof=1)) if len(by_part) > 1 else None,
        by_part=tuple(by_part),
        difference=None if found is reference else _difference(found, reference, condition),
        danger=danger_rate(found.missed(condition), found.icy),
    )


def _difference(found: _Pooled, reference: _Pooled, condition: str) -> Difference:
    generator = np.random.default_rng(0)
    interval = paired_bootstrap(found.right(condition), reference.right(condition), generator)
    return Difference(value=interval.difference, low=interval.low, high=interval.high)


def _is_gaussian(name: str) -> bool:
    known = find_perturbation(name)
    return known is not None and known.family == "gaussian"


def heading(condition: str) -> str:
    return "mean of all perturbations" if condition == MEAN else title_of(condition).removeprefix("Gaussian ")
