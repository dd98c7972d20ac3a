"""Figures of a comparison: accuracy against noise, and features seen through t-SNE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edge_road.datasets.index import Labels
from edge_road.evaluation.perturbations import CLEAN, find_perturbation
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.table import Comparison, Row, heading
from edge_road.training.drawing import class_legend, drawn, line_of, scatter
from edge_road.training.pool.layers import embedded

MOST_PICTURES = 400
"""of one map, each clean and noisy"""


def noise_curves(table: Comparison) -> bytes | None:
    """A line for each row over the levels of Gaussian noise; none without two levels."""
    if len(table.gaussian) < 2:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, row in enumerate(table.rows):
            levels, accuracies = zip(*_noise_points(table, row))
            axes.plot(levels, accuracies, marker="o", ms=3, label=row.name, **line_of(number))
        axes.set(xlabel="standard deviation of the noise (of 255)", ylabel="accuracy (%)")
        axes.grid(alpha=0.25)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)

    return drawn((7.2, 3.8), draw)


def _noise_points(table: Comparison, row: Row) -> list[tuple[float, float]]:
    known = {name: find_perturbation(name) for name in table.gaussian}
    levels = {name: found.level or 0.0 if found else 0.0 for name, found in known.items()}
    return sorted((levels[name], 100 * row.cells[name].accuracy) for name in table.gaussian)


def feature_maps(answers: Mapping[str, Answers], classes: Sequence[str]) -> bytes | None:
    """Clean and noisy test pictures of the first part, a column each (figure 1 of the paper)."""
    shown = {name: found for name, found in answers.items() if CLEAN in found.features}
    if not shown:
        return None

    def draw(figure: Any) -> None:
        grid = figure.subplots(2, len(shown), squeeze=False)
        for column, (name, found) in zip(grid.T, shown.items()):
            chosen_M = _spread(len(found.labels_N))
            features = {condition: of_N[chosen_M] for condition, of_N in found.features.items()}
            for axes, (condition, points_M2) in zip(column, embedded(features).items()):
                scatter(axes, points_M2, found.labels_N[chosen_M], classes)
                axes.set_title(f"{name}\n{CLEAN}" if condition == CLEAN else heading(condition), fontsize=8)
        class_legend(figure, grid[0, 0])

    return drawn((2.1 * len(shown), 4.4), draw)


def _spread(pictures: int) -> Labels:
    """Evenly over a test set: a map of all of a large one would take hours."""
    return np.linspace(0, pictures - 1, min(pictures, MOST_PICTURES), dtype=np.int64)
