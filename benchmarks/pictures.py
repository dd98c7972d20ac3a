"""The pictures of the benchmarks: bars with their spread, and growth on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from benchmarks.rounds import Spread
from edge_road.evaluation.figures import INK, SERIES_COLORS, color_of

OURS = "edge_road"
GREY = "#a9b0b8"


def bars(panels: Mapping[str, Mapping[str, Spread]]) -> bytes:
    """One panel for each title, one bar for each rival; ours in colour."""
    alike = len({tuple(rivals) for rivals in panels.values()}) == 1
    height = 0.9 + 0.34 * max(map(len, panels.values()))
    figure, all_axes = _canvas(len(panels), height, width=3.4 if alike else 5.0, share=alike)
    for axes, (title, rivals) in zip(all_axes, panels.items()):
        names = list(rivals)[::-1]
        found = [rivals[name] for name in names]
        middles = [spread.median for spread in found]
        spans = [[s.median - s.low for s in found], [s.high - s.median for s in found]]
        colours = [SERIES_COLORS[0] if name.startswith(OURS) else GREY for name in names]
        axes.barh(names, middles, xerr=spans, color=colours, error_kw={"ecolor": INK, "lw": 1, "capsize": 2})
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlim(0, _end_of_axis(title, max(1e-9, *(spread.high for spread in found))))
        for position, spread in enumerate(found):
            axes.text(spread.high, position, f"  {_short(spread.median)}", va="center", fontsize=8, color=INK)
        _tidy(axes)
    return _png(figure)


def growth(curves: Mapping[str, Sequence[tuple[float, float]]], exponents: Mapping[str, float]) -> bytes:
    """Seconds against size; a straight line is a power."""
    figure, (axes,) = _canvas(1, height=4.2, width=10.2, share=False)
    for position, (name, points) in enumerate(curves.items()):
        sizes, seconds = zip(*points)
        label = f"{name}, n^{exponents[name]:.2f}" if name in exponents else name
        line = "-" if position < len(SERIES_COLORS) else "--"
        axes.plot(sizes, seconds, line, marker="o", color=color_of(position), label=label, lw=1.4, ms=4)
    axes.set(
        xscale="log", yscale="log", xlabel="names, files, events or pictures", ylabel="processor seconds"
    )
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    _tidy(axes)
    return _png(figure)


def _end_of_axis(title: str, highest: float) -> float:
    """With room for the figure beside the bar, but no share is larger than the whole."""
    return min(1.25 * highest, 100.0 if title.endswith("%") else math.inf)


def _canvas(panels: int, height: float, width: float, *, share: bool) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, panels, figsize=(width * panels, height), squeeze=False, sharey=share, layout="constrained"
    )
    return figure, list(axes[0])


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _tidy(axes: Any) -> None:
    axes.tick_params(labelsize=8, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _png(figure: Any) -> bytes:
    import matplotlib.pyplot as plt

    target = BytesIO()
    figure.savefig(target, format="png", dpi=130, bbox_inches="tight")
    plt.close(figure)
    return target.getvalue()
