"""What INT8 recipes answered on the test pictures of several folds, pooled into one table.

Every picture counts once. A loss is the float model's share of right answers minus the recipe's, picture by
picture, with a paired-bootstrap interval over pictures; under perturbation a picture's share is the mean
over perturbations and their runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from edge_road.config import StrictModel
from edge_road.errors import DataError
from edge_road.evaluation.perturbations import CLEAN
from edge_road.evaluation.significance import Difference, paired_bootstrap

NOTHING = "–"
Shares = npt.NDArray[np.float64]
HEADER = (
    *("recipe", "clean", "loss (95 %)", "perturbed", "loss (95 %)", "agree", "perturbed"),
    *("ice missed", "rise (95 %)", "perturbed rise (95 %)", "INT8 kernels", "of the work", "size"),
)


class FoldAnswers(StrictModel):
    """One model on one fold's test pictures. Lists are by run, then by picture."""

    schema_name: Literal["edge_road.quantization_fold/1"] = "edge_road.quantization_fold/1"
    identity: str
    run: str
    recipe: str
    keys: tuple[str, ...]
    labels: tuple[int, ...]
    icy: tuple[bool, ...]
    said: dict[str, tuple[tuple[int, ...], ...]] = Field(default_factory=dict)
    missed_ice: dict[str, tuple[tuple[bool, ...], ...]] = Field(default_factory=dict)
    size_share: float = 0.0
    """of the float file"""
    int8_kernels: int = 0
    heavy_kernels: int = 0
    work_share: float = 0.0
    """of the multiply-adds, in kernels that TensorRT-RTX runs in INT8"""
    rtx: str = ""
    """built, refused: the reason, or not installed"""
    failure: str = ""
    """why there is no model"""


Judge = Callable[[FoldAnswers, str], npt.NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Pooled:
    """One recipe over all folds."""

    folds: Sequence[FoldAnswers]

    @property
    def perturbed(self) -> list[str]:
        return [name for name in self.folds[0].said if name != CLEAN]

    def right(self, conditions: Sequence[str]) -> Shares:
        """Of each picture, the mean over conditions and runs."""
        return self._shares(conditions, lambda fold, name: np.array(fold.said[name]) == np.array(fold.labels))

    def missed(self, conditions: Sequence[str]) -> Shares:
        """The same of missed ice, of the icy pictures alone."""
        icy_N = np.concatenate([np.array(fold.icy, dtype=bool) for fold in self.folds])
        return self._shares(conditions, lambda fold, name: np.array(fold.missed_ice[name]))[icy_N]

    def agreement(self, other: Pooled, conditions: Sequence[str]) -> float:
        partner = {fold.run: fold for fold in other.folds}
        return float(
            self._shares(
                conditions,
                lambda fold, name: np.array(fold.said[name]) == np.array(partner[fold.run].said[name]),
            ).mean()
        )

    def _shares(self, conditions: Sequence[str], judge: Judge) -> Shares:
        by_fold = [
            np.mean([judge(fold, name).mean(axis=0) for name in conditions], axis=0) for fold in self.folds
        ]
        return np.concatenate(by_fold)


def pool(answers: Mapping[str, Sequence[FoldAnswers]]) -> dict[str, Pooled]:
    """By recipe; every recipe must have answered the same pictures under the same conditions."""
    pooled = {recipe: Pooled(folds) for recipe, folds in answers.items()}
    first, *others = pooled.values()
    for one in others:
        for mine, its in zip(one.folds, first.folds):
            same = mine.keys == its.keys and mine.said.keys() == its.said.keys() and mine.run == its.run
            if not same or len(one.folds) != len(first.folds):
                raise DataError(
                    "two recipes have answered other pictures", got=f"{mine.recipe} on {mine.run}"
                )
    return pooled


def table_rows(pooled: Mapping[str, Pooled], reference: str, seed: int = 0) -> list[tuple[str, ...]]:
    return [_row(name, one, pooled[reference], name == reference, seed) for name, one in pooled.items()]


def _row(name: str, one: Pooled, float32: Pooled, is_reference: bool, seed: int) -> tuple[str, ...]:
    def lost(conditions: Sequence[str]) -> Difference:
        return _compare(float32.right(conditions), one.right(conditions), seed)

    def rise(conditions: Sequence[str]) -> Difference:
        return _compare(one.missed(conditions), float32.missed(conditions), seed)

    clean, perturbed = [CLEAN], one.perturbed
    has_ice = len(one.missed(clean)) > 0
    return (
        name,
        f"{100 * one.right(clean).mean():.2f}",
        NOTHING if is_reference else interval_text(lost(clean)),
        f"{100 * one.right(perturbed).mean():.2f}" if perturbed else NOTHING,
        interval_text(lost(perturbed)) if perturbed and not is_reference else NOTHING,
        NOTHING if is_reference else f"{100 * one.agreement(float32, clean):.2f}",
        f"{100 * one.agreement(float32, perturbed):.2f}" if perturbed and not is_reference else NOTHING,
        f"{100 * one.missed(clean).mean():.2f}" if has_ice else NOTHING,
        interval_text(rise(clean)) if has_ice and not is_reference else NOTHING,
        interval_text(rise(perturbed)) if has_ice and perturbed and not is_reference else NOTHING,
        _spread([_kernels(fold) for fold in one.folds]),
        _spread([f"{100 * fold.work_share:.0f} %" for fold in one.folds]),
        f"{100 * np.mean([fold.size_share for fold in one.folds]):.0f} %",
    )


def _compare(first: Shares, second: Shares, seed: int) -> Difference:
    return paired_bootstrap(first, second, np.random.default_rng(seed))


def interval_text(found: Difference) -> str:
    """In points; bold where zero lies outside the interval."""
    mark = "**" if found.significant else ""
    value, low, high = (100 * part for part in (found.difference, found.low, found.high))
    return f"{mark}{value:+.2f}{mark} ({low:+.2f} to {high:+.2f})"


def _kernels(fold: FoldAnswers) -> str:
    return (
        f"{fold.int8_kernels} of {fold.heavy_kernels}" if fold.rtx == "built" else fold.rtx.partition(":")[0]
    )


def _spread(texts: Sequence[str]) -> str:
    """One text where all folds agree."""
    return ", ".join(dict.fromkeys(texts))


def to_markdown(rows: Sequence[tuple[str, ...]], titles: Mapping[str, str]) -> str:
    lines = [HEADER, ("---",) + ("---:",) * (len(HEADER) - 1), *((titles[r[0]], *r[1:]) for r in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
