"""The command that measures several runs on their own test pictures and pools them by method."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from edge_road import workspace
from edge_road.errors import ConfigError, suggestion
from edge_road.files import write_atomically
from edge_road.training.command_line import row_of_reference, show_line, whole_number
from edge_road.training.pool.wanted import MEASURES, REFERENCE, VEHICLE_LIMITS, Wanted

JSON_FILE, MARKDOWN_FILE, FIGURES, KEPT = "pool.json", "pool.md", "figures", "samples"
EPILOG = """\
measures:
  strangers  AUROC of confidence, distance and either on pictures without a
             road; proposes a rule
  curvature  of the loss over the input, with the accuracy of the flattest
             portions (runs only)
  layers     t-SNE of clean and noisy pictures in every stage (runs only; the
             first of each row)

examples:
  edge-road pool comparisons/road_small         all runs of it, by method
  edge-road pool out/runs/softmax-* out/runs/nfm-* --measures curvature
  edge-road pool bundles/a bundles/b --measures strangers
"""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    from edge_road.training.pool.markdown import to_markdown
    from edge_road.training.pool.measure import draw_figures, put_together, take_samples
    from edge_road.training.pool.members import places_of

    wanted = Wanted(_measures(chosen.measures), chosen.images, chosen.seed, tuple(chosen.limits))
    places = places_of(chosen.subjects)
    out = chosen.out or workspace.home() / "reports" / "pool"
    samples = take_samples(places, wanted, out / KEPT, show_line)
    reference = row_of_reference(chosen.reference, list(samples.classes), REFERENCE)
    pooled = put_together(samples, wanted, reference)
    show_line("figures")
    drawn = draw_figures(samples, pooled)
    show_line("")
    for name, png in drawn.items():
        write_atomically(out / FIGURES / name, png)
    write_atomically(out / JSON_FILE, pooled.to_json().encode())
    write_atomically(out / MARKDOWN_FILE, to_markdown(pooled).encode())
    names = [JSON_FILE, MARKDOWN_FILE, *(f"{FIGURES}/{name}" for name in drawn)]
    print(to_markdown(pooled), *(out / name for name in names), sep="\n")
    return 0


def _measures(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in MEASURES:
            fix = suggestion(name, MEASURES)
            raise ConfigError(
                "no such measure", where="--measures", got=name, expected=", ".join(MEASURES), fix=fix
            )
    return names or MEASURES


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-road pool",
        description="Measure several runs or bundles, each on its own test pictures, by method.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("subjects", nargs="+", metavar="PLACE", help="runs, bundles, or the folder of a comparison")
    add("--measures", default="", metavar="A,B", help="strangers, curvature, layers (default: all)")
    add(
        "--images",
        type=whole_number(1),
        default=64,
        metavar="N",
        help="test pictures of each run for the curvature (default: %(default)s)",
    )
    add(
        "--limits",
        nargs=2,
        type=float,
        default=VEHICLE_LIMITS,
        metavar=("CONFIDENCE", "RADII"),
        help="of the vehicle, to count what it refuses (default: {:g} {:g})".format(*VEHICLE_LIMITS),
    )
    add("--reference", metavar="ROW", help="whose curvature the others are compared with (default: softmax)")
    add("--seed", type=whole_number(0), default=0, metavar="N", help="of pictures and noise")
    add("--out", type=Path, metavar="DIR", help="default: reports/pool; interrupted, the same continues")
    return parser
