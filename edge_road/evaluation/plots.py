"""Plots as inline SVG that takes the page's text colour, so that light and dark both work."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

SERIES_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_INK = "#010203"  # stands for the page's text colour until the SVG is written
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "edge_road",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
Curve = Sequence[tuple[float, float, float | None]]  # level, accuracy, standard deviation


def noise_plot(curves: Mapping[str, Curve]) -> str:
    """Accuracy against the standard deviation of Gaussian noise, a line for each artefact."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(4.8, 3.1), layout="constrained")
        axes = figure.add_subplot()
        for position, (title, curve) in enumerate(curves.items()):
            levels, accuracies, deviations = zip(*curve)
            axes.errorbar(
                levels,
                [100 * accuracy for accuracy in accuracies],
                yerr=[100 * (deviation or 0.0) for deviation in deviations],
                color=SERIES_COLORS[position % len(SERIES_COLORS)],
                marker="o",
                capsize=3,
                label=title,
            )
        axes.set(xlabel="standard deviation of the noise (of 255)", ylabel="accuracy (%)", ylim=(0, 103))
        axes.grid(alpha=0.25)
        if len(curves) > 1:
            axes.legend(frameon=False, loc="lower left")
        return _svg(figure, "Accuracy against the standard deviation of Gaussian noise")


def confusion_plot(classes: Sequence[str], confusion: Sequence[Sequence[int]], title: str) -> str:
    """Rows: truth, columns: said; the fill is the share of the row."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = [*classes, "no answer"] if any(row[-1] for row in confusion) else list(classes)
    few = len(classes) <= 8
    side = 1.6 + (0.62 if few else 0.34) * len(columns)
    with rc_context(_STYLE):
        figure = Figure(figsize=(side + (0.0 if few else 1.0), side), layout="constrained")
        axes = figure.add_subplot()
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
        return _svg(figure, title)


def _cell(axes: Any, row: int, column: int, count: int, total: int, font_size: float) -> None:
    from matplotlib.patches import Rectangle

    share = count / total if total else 0.0
    color = SERIES_COLORS[0] if row == column else SERIES_COLORS[1] if count else _INK
    corner = (column - 0.48, row - 0.48)
    axes.add_patch(Rectangle(corner, 0.96, 0.96, facecolor=color, alpha=0.05 + 0.7 * share, linewidth=0))
    if count:
        axes.text(column, row, count, ha="center", va="center", fontsize=font_size)


def _svg(figure: Any, title: str) -> str:
    """Only the element: no prologue, no name spaces and no metadata, none of which a page needs."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace(_INK, "currentColor")
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)
