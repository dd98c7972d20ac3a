"""What several runs say together, as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edge_road.evaluation.ood import RULES
from edge_road.training.pool.result import CurvatureRow, LayersRow, Pooled, StrangersRow

NOTHING = "–"


def to_markdown(pooled: Pooled) -> str:
    sections = [
        *(_strangers(row) for row in pooled.strangers),
        _refused(pooled) if pooled.strangers else "",
        _curvature(pooled) if pooled.curvature else "",
        _layers(pooled.layers) if pooled.layers else "",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(heads), ["---"] + ["---:"] * (len(heads) - 1), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _strangers(row: StrangersRow) -> str:
    rows = []
    for kind, by_rule in {**row.kinds, "**mean**": row.means}.items():
        cells = (
            f"{found.auroc:.3f}{_spread(found.deviation)} ({found.caught:.0%})"
            for found in (by_rule[rule] for rule in RULES)
        )
        rows.append([kind, *cells])
    title = f"## Pictures without a road: `{row.name}`"
    what = (
        f"AUROC against {row.roads} road pictures, mean over {row.runs} run{'s' * (row.runs > 1)}; in "
        "brackets the share refused where 95 % of the roads pass."
    )
    return f"{title}\n\n{what}\n\n{grid(['', *RULES], rows)}\n\n{proposal(row)}"


def proposal(row: StrangersRow) -> str:
    """In the words of a vehicle file."""
    best = f"Proposed rule: **{row.best}** (mean AUROC {row.means[row.best].auroc:.3f})"
    if row.at_limits is None or row.at_distance_limit is None:
        return f"{best}."
    return (
        f"{best}. 95 % of the roads pass both limits at `confidence = {row.confidence:.2f}` and "
        f"`familiar_radii = {row.radii:.2f}`, read off {row.limits_from}. Of the test pictures these refuse "
        f"{_shares(row.at_limits)}; distance alone at `familiar_radii = {row.distance_limit:.2f}` refuses "
        f"{_shares(row.at_distance_limit)}."
    )


def _shares(refused: Mapping[str, float]) -> str:
    others = [share for kind, share in refused.items() if kind != "roads"]
    return f"{refused['roads']:.1%} of the roads and {sum(others) / len(others):.0%} of the others"


def _refused(pooled: Pooled) -> str:
    confidence, radii = pooled.limits
    names = list(pooled.strangers[0].refused)
    rows = [[row.name, *(f"{row.refused[name]:.1%}" for name in names)] for row in pooled.strangers]
    what = f"Share refused below confidence {confidence:g} or beyond {radii:g} radii."
    return f"## At the limits of a vehicle\n\n{what}\n\n{grid(['', *names], rows)}"


def _curvature(pooled: Pooled) -> str:
    heads = ["", "pictures", "median", "by run", "mean of the lowest 90 %", "flatter than the reference"]
    heads += ["noisy accuracy: flattest 10 %", "50 %", "all", "correlation"]
    rows = [_curvature_cells(row) for row in pooled.curvature]
    noise = 255 * pooled.curvature[0].pooled.sigma
    what = (
        "Curvature of the loss over the input (robust_discriminative_noise, Eq. 21). Noisy accuracy under "
        f"Gaussian noise {noise:.0f}/255; correlation of times right and mean curvature (Figure 9). "
        f"The reference is `{pooled.reference}`."
    )
    return f"## Curvature\n\n{what}\n\n{grid(heads, rows)}"


def _curvature_cells(row: CurvatureRow) -> list[str]:
    retained = dict(row.pooled.retained)
    flatter = NOTHING
    if row.flatter is not None:
        flatter = f"{row.flatter:.0%} ({row.flatter_low:.0%} to {row.flatter_high:.0%})"
    return [
        row.name,
        str(row.pictures),
        f"{row.pooled.median:.3g}",
        ", ".join(f"{median:.3g}" for median in row.medians),
        f"{row.pooled.mean_of_lowest:.3g}",
        flatter,
        *(f"{retained[portion]:.1%}" for portion in (0.1, 0.5, 1.0)),
        NOTHING if row.pooled.correlation is None else f"{row.pooled.correlation:.2f}",
    ]


def _layers(rows: Sequence[LayersRow]) -> str:
    names = list(rows[0].clean)
    lines = [
        [f"{row.name}, {condition}", *(_number(found.get(name)) for name in names)]
        for row in rows
        for condition, found in (("clean", row.clean), ("noisy", row.noisy))
    ]
    what = "Silhouette of the classes in each layer, first run: 1 far apart, 0 overlapping."
    return f"## Layers\n\n{what}\n\n{grid(['', *names], lines)}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _spread(deviation: float | None) -> str:
    return "" if deviation is None else f" ± {deviation:.3f}"
