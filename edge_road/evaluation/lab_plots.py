"""Plots of the torch measures, after Figures 8 to 11 of robust_discriminative_noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edge_road.evaluation.figures import color_of, legend, plot, scale_by_powers
from edge_road.evaluation.lab_result import LabResult, SurfaceResult

SIZE = (4.0, 3.0)
Labs = Mapping[str, LabResult]


def retained_plot(labs: Labs) -> str:
    """Figure 8."""

    def draw(axes: Any) -> None:
        for position, (title, lab) in enumerate(labs.items()):
            portions, accuracies = zip(*lab.curvature.retained)
            axes.plot(
                [100 * p for p in portions],
                [100 * a for a in accuracies],
                marker="o",
                color=color_of(position),
                label=title,
            )
        axes.set(xlabel="retained pictures of least curvature (%)", ylabel="accuracy under noise (%)")
        axes.grid(alpha=0.25)
        legend(axes, len(labs))

    return plot("Accuracy under noise of the pictures of least curvature", SIZE, draw)


def groups_plot(labs: Labs) -> str:
    """Figure 9."""

    def draw(axes: Any) -> None:
        for position, (title, lab) in enumerate(labs.items()):
            groups = lab.curvature.groups
            x, y = [g.times_right for g in groups], [g.curvature for g in groups]
            axes.plot(x, y, marker="o", color=color_of(position), label=title)
        runs = next(iter(labs.values())).curvature.noisy_runs
        axes.set(xlabel=f"times right of {runs} noisy copies", ylabel="mean curvature")
        scale_by_powers(axes, "y")
        axes.set_xlim(-0.4, runs + 0.4)
        axes.grid(alpha=0.25)
        legend(axes, len(labs))

    return plot("Mean curvature by times right", SIZE, draw)


def box_plot(labs: Labs) -> str:
    """Figure 10: without the tenth of largest curvature."""

    def draw(axes: Any) -> None:
        names = ("whislo", "q1", "med", "q3", "whishi")
        boxes = [dict(zip(names, lab.curvature.lowest)) for lab in labs.values()]
        drawn = axes.bxp(boxes, showfliers=False, patch_artist=True, widths=0.5)
        for position, patch in enumerate(drawn["boxes"]):
            patch.set(facecolor=color_of(position), alpha=0.6)
        axes.set_xticks(range(1, len(labs) + 1), [f"[{n}]" for n in range(1, len(labs) + 1)])
        axes.set(ylabel="curvature", xlabel="model")
        scale_by_powers(axes, "y")
        axes.grid(alpha=0.25, axis="y")

    return plot("Curvature of the 90 % of least curvature", SIZE, draw)


def flatness_plot(labs: Labs) -> str:
    def draw(axes: Any) -> None:
        for position, (title, lab) in enumerate(labs.items()):
            radii, losses = zip(*lab.flatness)
            axes.plot([100 * r for r in radii], losses, marker="o", color=color_of(position), label=title)
        axes.set(xlabel="step in the weights (% of their length)", ylabel="mean loss")
        scale_by_powers(axes, "y")
        axes.grid(alpha=0.25)
        legend(axes, len(labs))

    return plot("Mean loss after a random step in the weights", SIZE, draw)


def surface_plot(surface: SurfaceResult, title: str) -> str:
    """Figure 11, seen from above; the picture itself is the dot."""

    def draw(axes: Any) -> None:
        ends = (surface.offsets[0], surface.offsets[-1])
        shown = axes.imshow(
            surface.loss, origin="lower", extent=(*ends, *ends), cmap="viridis", interpolation="bilinear"
        )
        axes.plot(0, 0, "o", color="black", markeredgecolor="white", markersize=7)
        axes.set(xlabel="across the gradient (L2)", ylabel="along the gradient (L2)")
        axes.figure.colorbar(shown, ax=axes, label="loss", shrink=0.85)

    return plot(title, (3.9, 3.1), draw)
