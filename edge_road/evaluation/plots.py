"""The plots that every report has: noise, confusion, reliability, risk against coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edge_road.evaluation.abstention import Abstention
from edge_road.evaluation.figures import INK, SERIES_COLORS, color_of, legend, plot
from edge_road.evaluation.reliability import Calibration, Reliability

WIDE, SQUARE = (4.8, 3.1), (3.6, 3.4)
LEAST_JOINED = 10
"""answers of a point that a line may lead to: fewer make it leap from 0 to 100 %"""
Curve = Sequence[tuple[float, float, float | None]]  # level, accuracy, standard deviation


def noise_plot(curves: Mapping[str, Curve]) -> str:
    """Accuracy against the standard deviation of Gaussian noise, a line for each artefact."""

    def draw(axes: Any) -> None:
        for position, (title, curve) in enumerate(curves.items()):
            levels, accuracies, deviations = zip(*curve)
            axes.errorbar(
                levels,
                [100 * accuracy for accuracy in accuracies],
                yerr=[100 * (deviation or 0.0) for deviation in deviations],
                color=color_of(position),
                marker="o",
                capsize=3,
                label=title,
            )
        axes.set(xlabel="standard deviation of the noise (of 255)", ylabel="accuracy (%)", ylim=(0, 103))
        axes.grid(alpha=0.25)
        legend(axes, len(curves))

    return plot("Accuracy against the standard deviation of Gaussian noise", _taller(WIDE, curves), draw)


def confusion_plot(classes: Sequence[str], confusion: Sequence[Sequence[int]], title: str) -> str:
    """Rows: truth, columns: said; the fill is the share of the row."""
    columns = [*classes, "no answer"] if any(row[-1] for row in confusion) else list(classes)
    few = len(classes) <= 8
    side = 1.6 + (0.62 if few else 0.34) * len(columns)

    def draw(axes: Any) -> None:
        for row, counts in enumerate(confusion):
            for column in range(len(columns)):
                _cell(axes, row, column, counts[column], sum(counts), 11 if few else 6.5)
        axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(classes) - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(len(columns)), columns, rotation=0 if few else 90, fontsize=None if few else 7)
        axes.set_yticks(range(len(classes)), classes, fontsize=None if few else 7)
        axes.set(xlabel="said", ylabel="truth")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)

    return plot(title, (side + (0.0 if few else 1.0), side), draw)


def reliability_plot(calibration: Calibration, title: str) -> str:
    """Accuracy against confidence; on the diagonal a model is right as often as it says."""
    series = (
        (calibration.before, "as trained", SERIES_COLORS[1]),
        (calibration.after, f"temperature {calibration.temperature:.2f}", SERIES_COLORS[0]),
    )

    def draw(axes: Any) -> None:
        axes.plot((0, 100), (0, 100), color=INK, alpha=0.35, linewidth=1, linestyle="--")
        for reliability, label, color in series:
            _reliability_line(axes, reliability, label, color)
        axes.set(xlabel="confidence (%)", ylabel="accuracy (%)", xlim=(0, 105), ylim=(0, 106))
        axes.grid(alpha=0.25)
        legend(axes, 2)

    return plot(title, SQUARE, draw)


def risk_plot(curves: Mapping[str, Abstention]) -> str:
    """The share of wrong answers among those given, against how many are given; a ring where it works."""

    def draw(axes: Any) -> None:
        for position, (title, abstention) in enumerate(curves.items()):
            color = color_of(position)
            coverage = [100 * point.coverage for point in abstention.curve]
            risk = [100 * (point.risk or 0.0) for point in abstention.curve]
            axes.plot(coverage, risk, color=color, label=title, linewidth=1.6)
            chosen = abstention.chosen
            if chosen and chosen.risk is not None:
                axes.plot(100 * chosen.coverage, 100 * chosen.risk, "o", mfc="none", color=color, ms=8)
        axes.set(xlabel="answered (% of the pictures)", ylabel="wrong (% of the answers)", xlim=(0, 102))
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        legend(axes, len(curves))

    return plot("Share of wrong answers against the share of pictures answered", _taller(WIDE, curves), draw)


def _reliability_line(axes: Any, reliability: Reliability, label: str, color: str) -> None:
    """The area of a mark tells how many answers stand behind it; of a few, nothing can be read off."""
    total = sum(each.answers for each in reliability.bins)
    filled = [
        (100 * (each.confidence or 0.0), 100 * (each.accuracy or 0.0), each.answers)
        for each in reliability.bins
        if each.answers
    ]
    joined = [(x, y) for x, y, answers in filled if answers >= LEAST_JOINED]
    name = f"{label}: error {reliability.calibration_error:.1%}"
    axes.plot(*zip(*(joined or [(np.nan, np.nan)])), color=color, linewidth=1.2, label=name)
    for x, y, answers in filled:
        alpha = 0.75 if answers >= LEAST_JOINED else 0.25
        axes.scatter(x, y, s=12 + 130 * answers / total, color=color, alpha=alpha, linewidth=0)


def _cell(axes: Any, row: int, column: int, count: int, total: int, font_size: float) -> None:
    from matplotlib.patches import Rectangle

    share = count / total if total else 0.0
    color = SERIES_COLORS[0] if row == column else SERIES_COLORS[1] if count else INK
    corner = (column - 0.48, row - 0.48)
    axes.add_patch(Rectangle(corner, 0.96, 0.96, facecolor=color, alpha=0.05 + 0.7 * share, linewidth=0))
    if count:
        axes.text(column, row, count, ha="center", va="center", fontsize=font_size)


def _taller(size: tuple[float, float], curves: Mapping[str, object]) -> tuple[float, float]:
    """Room for a legend of one line each."""
    return size[0], size[1] + (0.18 * len(curves) if len(curves) > 1 else 0.0)
