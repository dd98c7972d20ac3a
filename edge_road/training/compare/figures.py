"""Figures of a comparison as PNG data: accuracy against noise, and features seen through t-SNE."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edge_road.evaluation.perturbations import CLEAN, find_perturbation
from edge_road.frames import Floats
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.table import Comparison, Row, heading

_INK = "#808890"  # readable on light and on dark pages
_STYLE: Any = {
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_LINES = ("-", "--", ":")
_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999")


def noise_curves(table: Comparison) -> str | None:
    """A line for each row over the levels of Gaussian noise; none without two levels."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if len(table.gaussian) < 2:
        return None
    with rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 3.8), layout="constrained")
        axes = figure.add_subplot()
        for number, row in enumerate(table.rows):
            levels, accuracies = zip(*_noise_points(table, row))
            style: Any = {
                "color": _COLORS[number % len(_COLORS)],
                "ls": _LINES[number // len(_COLORS) % len(_LINES)],
            }
            axes.plot(levels, accuracies, marker="o", ms=3, label=row.name, **style)
        axes.set(xlabel="standard deviation of the noise (of 255)", ylabel="accuracy (%)")
        axes.grid(alpha=0.25)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
        return _png(figure)


def _noise_points(table: Comparison, row: Row) -> list[tuple[float, float]]:
    known = {name: find_perturbation(name) for name in table.gaussian}
    levels = {name: found.level or 0.0 if found else 0.0 for name, found in known.items()}
    return sorted((levels[name], 100 * row.cells[name].accuracy) for name in table.gaussian)


def feature_maps(answers: Mapping[str, Answers], classes: Sequence[str]) -> str | None:
    """Clean and noisy test pictures of the first part, a column each (figure 1 of the paper)."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shown = {name: found for name, found in answers.items() if CLEAN in found.features}
    if not shown:
        return None
    with rc_context({**_STYLE, "axes.spines.bottom": False, "axes.spines.left": False}):
        figure = Figure(figsize=(2.1 * len(shown), 4.4), layout="constrained")
        grid = figure.subplots(2, len(shown), squeeze=False)
        for column, (name, found) in zip(grid.T, shown.items()):
            for axes, (condition, points_N2) in zip(column, _embedded(found.features).items()):
                _scatter(axes, points_N2, found.labels_N, classes)
                axes.set_title(f"{name}\n{CLEAN}" if condition == CLEAN else heading(condition), fontsize=8)
        figure.legend(
            *grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
        )
        return _png(figure)


def _embedded(features: Mapping[str, Floats]) -> dict[str, Floats]:
    """All conditions in one map, so that their places can be compared."""
    from sklearn.manifold import TSNE

    together = np.concatenate(list(features.values()))
    perplexity = min(30.0, (len(together) - 1) / 3)
    points = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(together)
    return dict(zip(features, np.split(points, len(features))))


def _scatter(axes: Any, points_N2: Floats, labels_N: Any, classes: Sequence[str]) -> None:
    for number, name in enumerate(classes):
        mine_K2 = points_N2[labels_N == number]
        axes.scatter(*mine_K2.T, s=5, color=_COLORS[number % len(_COLORS)], label=name, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])


def _png(figure: Any) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=160, transparent=True, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
