"""How figures of trainings are drawn: PNG that can be read on light and on dark pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from typing import Any

from edge_road.datasets.index import Labels
from edge_road.frames import Floats

INK = "#808890"
_STYLE: Any = {
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,
}
_LINES = ("-", "--", ":")
_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999")


def color_of(number: int) -> str:
    return _COLORS[number % len(_COLORS)]


def line_of(number: int) -> Any:
    """Seven colours, then again with dashes."""
    return {"color": color_of(number), "ls": _LINES[number // len(_COLORS) % len(_LINES)]}


def drawn(size: tuple[float, float], draw: Callable[[Any], None], dpi: int = 160) -> bytes:
    """`draw` fills the figure; equal values give equal bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=dpi, transparent=True, metadata={"Software": None})
        return content.getvalue()


def as_source(png: bytes) -> str:
    """For the `src` of an image inside a page."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def scatter(axes: Any, points_N2: Floats, labels_N: Labels, classes: Sequence[str]) -> None:
    """A map without scales: only what lies beside what has a meaning."""
    for number, name in enumerate(classes):
        mine_K2 = points_N2[labels_N == number]
        axes.scatter(*mine_K2.T, s=5, color=color_of(number), label=name, linewidths=0)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("bottom", "left"):
        axes.spines[side].set_visible(False)


def class_legend(figure: Any, axes: Any) -> None:
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, markerscale=2
    )
