"""Figures 8, 10, 12 and 13 of robust_discriminative_noise, over several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edge_road.evaluation.figures import scale_by_powers
from edge_road.evaluation.page import title_of
from edge_road.training.drawing import INK, class_legend, color_of, drawn, line_of, scatter
from edge_road.training.pool.layers import LayerSample, embedded
from edge_road.training.pool.result import CurvatureRow

_BOX = ("whislo", "q1", "med", "q3", "whishi")


def curvature_boxes(rows: Sequence[CurvatureRow]) -> bytes:
    """Figure 10: without the tenth of largest curvature; whiskers reach to the ends."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        boxes = [dict(zip(_BOX, row.pooled.lowest)) for row in rows]
        shown = axes.bxp(boxes, showfliers=False, patch_artist=True, widths=0.5, orientation="horizontal")
        for number, patch in enumerate(shown["boxes"]):
            patch.set(facecolor=color_of(number), alpha=0.6)
        for line in (*shown["whiskers"], *shown["caps"]):
            line.set(color=INK)
        for line in shown["medians"]:
            line.set(color="#101418", lw=1.5)
        axes.set_yticks(range(1, len(rows) + 1), [row.name for row in rows])
        axes.invert_yaxis()
        scale_by_powers(axes, "x")
        axes.set(xlabel="input-loss curvature, the 90 % of least (less is flatter)")
        axes.grid(alpha=0.25, axis="x")

    return drawn((7.2, 1.2 + 0.4 * len(rows)), draw)


def retained_curves(rows: Sequence[CurvatureRow]) -> bytes:
    """Figure 8."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, row in enumerate(rows):
            portions, accuracies = zip(*row.pooled.retained)
            points = [100 * p for p in portions], [100 * a for a in accuracies]
            axes.plot(*points, marker="o", ms=3, label=row.name, **line_of(number))
        axes.set(
            xlabel="retained pictures of least curvature (%)",
            ylabel=f"accuracy under noise {255 * rows[0].pooled.sigma:.0f}/255 (%)",
        )
        axes.grid(alpha=0.25)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)

    return drawn((7.2, 3.8), draw)


def layer_maps(name: str, sample: LayerSample, classes: Sequence[str]) -> bytes:
    """Figures 12 and 13 of one model: a column for each layer, clean above and noisy below."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(2, len(sample.layers), squeeze=False)
        for column, (layer, features) in zip(grid.T, sample.layers.items()):
            column[0].set_title(layer, fontsize=8)
            for axes, points_N2 in zip(column, embedded(features).values()):
                scatter(axes, points_N2, sample.labels_N, classes)
        for axes, condition in zip(grid[:, 0], next(iter(sample.layers.values()))):
            axes.set_ylabel(title_of(condition), fontsize=8)
        figure.suptitle(name, fontsize=10)
        class_legend(figure, grid[0, 0])

    return drawn((1.55 * len(sample.layers) + 0.4, 4.0), draw, dpi=120)
