"""An axis always has numbers to read values from, however near to one another the values are."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from edge_road.evaluation.figures import scale_by_powers


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([2.1, 2.9], "linear"),
        ([3e5, 8e5], "linear"),
        ([0.0, 0.0], "linear"),
        ([0.02, 0.3], "log"),
        ([0.2, 15.0], "log"),
        ([1e-6, 1e5], "log"),
        ([0.0, 1e-3, 1e3], "log"),
    ],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_at_least_two_numbers_stand_at_every_axis(name: str, values: list[float], scale: str) -> None:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot(values, values, marker="o")
    scale_by_powers(axes, name)  # type: ignore[arg-type]
    figure.draw_without_rendering()
    axis = getattr(axes, f"{name}axis")
    low, high = axis.get_view_interval()
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    shown = [t for t in ticks if low <= t.get_loc() <= high and t.label1.get_text()]
    assert axis.get_scale() == scale
    assert len(shown) >= 2
