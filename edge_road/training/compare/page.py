"""The comparison as one HTML page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from edge_road.training.compare import markdown
from edge_road.training.compare.illustrations import Illustration
from edge_road.training.compare.table import Comparison, heading
from edge_road.training.drawing import as_source

MOST_EMBEDDED = 1_900_000
"""bytes of pictures; written as text they grow by a third, and the page stays below 3 MB"""


def render_page(table: Comparison, illustrations: Sequence[Illustration]) -> str:
    """Pictures that would make it too large are named only: they lie beside it."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = resources.files(__package__).joinpath("compare.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        table=table,
        description=markdown.describe(table).replace("`", ""),
        heading=heading,
        grids=[
            ("Accuracy under Gaussian noise, %", table.gaussian, markdown.accuracy),
            ("Accuracy under other perturbations, %", table.others, markdown.accuracy),
            (
                f"Difference to {table.reference}, points, with 95 % interval",
                table.everything,
                markdown.difference,
            ),
            ("Danger rate: icy roads not called icy, %", table.everything, markdown.danger),
        ],
        best={name: max(row.cells[name].accuracy for row in table.rows) for name in table.conditions},
        illustrations=_with_sources(illustrations),
    )


def _with_sources(illustrations: Sequence[Illustration]) -> list[tuple[Illustration, str | None]]:
    room, shown = MOST_EMBEDDED, []
    for picture in illustrations:
        fits = len(picture.png) <= room
        shown.append((picture, as_source(picture.png) if fits else None))
        room -= len(picture.png) if fits else 0
    return shown
