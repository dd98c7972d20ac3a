"""The comparison as one HTML page that needs nothing but itself."""

from __future__ import annotations

from importlib import resources

from edge_road.training.compare import markdown
from edge_road.training.compare.table import Comparison, heading


def render_page(table: Comparison, noise_curves: str | None, feature_maps: str | None) -> str:
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
        noise_curves=noise_curves,
        feature_maps=feature_maps,
    )
