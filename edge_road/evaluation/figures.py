"""How every plot is made: inline SVG that takes the page's text colour, so that light and dark both work."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any, Literal

SERIES_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
INK = "#010203"  # stands for the page's text colour until the SVG is written
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "edge_road",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def color_of(position: int) -> str:
    return SERIES_COLORS[position % len(SERIES_COLORS)]


def plot(title: str, size: tuple[float, float], draw: Callable[[Any], None]) -> str:
    """`draw` fills the axes; `title` is for those who hear the page."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=size)
        # A browser's letters may be wider than those that were measured here.
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.06)
        draw(figure.add_subplot())
        return _svg(figure, title)


def legend(axes: Any, entries: int, **place: Any) -> None:
    """Above the plot, where no line can run through it; one entry needs none."""
    if entries > 1:
        where = {"loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0.0, "ncols": 1, **place}
        axes.legend(frameon=False, fontsize=8.5, **where)


def scale_by_powers(axes: Any, name: Literal["x", "y"]) -> None:
    """A logarithmic axis that has numbers: values within one power of ten get a linear one."""
    axis = getattr(axes, f"{name}axis")
    least, most = axis.get_minpos(), max(axis.get_data_interval())
    if most <= 10 * least:
        return
    axes.set(**{f"{name}scale": "log"})
    between = ("2", "5") if most < 100 * least else ()
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:.0e}"[0] in between else "")


def _svg(figure: Any, title: str) -> str:
    """Only the element: no prologue, no name spaces and no metadata, none of which a page needs."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = _with_own_names(text.replace(INK, "currentColor"), title)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(title)}"', 1)


def _with_own_names(svg: str, title: str) -> str:
    """Several plots share one page: clip paths and markers of one must not answer for another's."""
    prefix = re.sub(r"\W+", "-", title.lower())
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    return re.sub(r"url\(#", f"url(#{prefix}-", svg)
