"""The command that trains methods alike and writes the paper's tables about them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edge_road import workspace
from edge_road.errors import TrainingError
from edge_road.files import write_atomically
from edge_road.recipe_method import METHOD_KINDS
from edge_road.training.command_line import (
    add_recipe_options,
    row_of_reference,
    whole_number,
    wishes_of,
)
from edge_road.training.compare.plan import Part, Trial, Variation, plan_trials
from edge_road.training.guard import Diverged

if TYPE_CHECKING:
    from edge_road.training.compare.answers import Answers
    from edge_road.training.compare.table import Comparison

REFERENCE = "discriminative"
FIGURE_IMAGES = 32
JSON_FILE, MARKDOWN_FILE, HTML_FILE, FIGURES = "table.json", "table.md", "compare.html", "figures"
EPILOG = f"""\
methods:
{textwrap.fill(", ".join(METHOD_KINDS), 80, initial_indent="  ", subsequent_indent="  ")}

examples:
  compare_methods.py --recipe road_small --data photos --folds 5
  compare_methods.py --recipe road_small --data photos --folds 5 \\
      --methods discriminative --vary method.delta_d=1,3,5       (an ablation)
  the same again with --figures: nothing is trained again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    variations = [Variation.parse(text) for text in chosen.vary]
    part: Part = "fold" if chosen.folds else "seed"
    methods = chosen.methods.split(",")
    trials = plan_trials(wishes_of(chosen), methods, part, chosen.folds or chosen.seeds, variations)
    reference = _reference(chosen.reference, trials)
    out = chosen.out or workspace.home() / "comparisons" / trials[0].recipe.name
    answers, lost = _run(trials, out, chosen.perturbations, chosen.runs)
    has_tables = reference in answers
    if has_tables:
        finished = [trial for trial in trials if trial.row in answers]
        _write(out, finished, answers, _table(finished, answers, reference, chosen.runs), chosen.figures)
    if lost:
        raise _incomplete(out, lost, has_tables)
    return 0


def _run(
    trials: Sequence[Trial], out: Path, perturbations: str, runs: int
) -> tuple[dict[str, list[Answers]], list[str]]:
    """Answers by row, and why others were given up; what an earlier call has finished is only read."""
    from edge_road.evaluation.perturbations import expand
    from edge_road.training.compare.progress import TrialProgress
    from edge_road.training.compare.trials import Bench

    bench = Bench(out, expand(name.strip() for name in perturbations.split(",") if name.strip()), runs)
    progress = TrialProgress(trials, [trial for trial in trials if not bench.is_done(trial)])
    answers: dict[str, list[Answers]] = {trial.row: [] for trial in trials}
    lost: list[str] = []
    for trial in trials:
        if trial.row not in answers:
            continue
        progress.begin(trial)
        try:
            found = bench.answers(trial, progress)
        except Diverged as error:
            progress.give_up(trial, error)
            lost.append(f"{trial.title}: {error.what}")
            del answers[trial.row]
            continue
        progress.finish(trial, found)
        answers[trial.row].append(found)
    return answers, lost


def _incomplete(out: Path, lost: Sequence[str], has_tables: bool) -> TrainingError:
    return TrainingError(
        "the tables lack rows that could not be trained" if has_tables else "the row of reference is lost",
        where=out,
        got="; ".join(lost),
        fix="leave them out with --methods, or lower optimizer.learning_rate in another --out",
    )


def _write(
    out: Path, trials: Sequence[Trial], answers: dict[str, list[Answers]], table: Comparison, images: int
) -> None:
    from edge_road.training.compare.illustrations import illustrate
    from edge_road.training.compare.markdown import to_markdown
    from edge_road.training.compare.page import render_page

    illustrations = illustrate(out, trials, answers, table, images)
    page = render_page(table, illustrations)
    for picture in illustrations:
        write_atomically(out / FIGURES / picture.file, picture.png)
    write_atomically(out / JSON_FILE, table.to_json().encode())
    write_atomically(out / MARKDOWN_FILE, to_markdown(table).encode())
    write_atomically(out / HTML_FILE, page.encode())
    names = [JSON_FILE, MARKDOWN_FILE, HTML_FILE, *(f"{FIGURES}/{picture.file}" for picture in illustrations)]
    print(to_markdown(table), *(out / name for name in names), sep="\n")


def _table(
    trials: Sequence[Trial], answers: dict[str, list[Answers]], reference: str, runs: int
) -> Comparison:
    from edge_road.training.compare.table import Comparison, build_rows

    first = trials[0]
    rows = build_rows(answers, reference)
    return Comparison(
        recipe=first.recipe.name,
        epochs=first.recipe.training.epochs,
        part=first.part,
        parts=1 + max(trial.number for trial in trials),
        pictures=len({key for part in answers[reference] for key in part.keys}),
        runs=runs,
        reference=reference,
        conditions=tuple(rows[0].cells),
        rows=rows,
    )


def _reference(wanted: str | None, trials: Sequence[Trial]) -> str:
    return row_of_reference(wanted, list(dict.fromkeys(trial.row for trial in trials)), REFERENCE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Train methods alike, judge them under perturbation, write the paper's tables.\n"
        "Interrupted, the same command continues.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_recipe_options(parser, method=False)
    add = parser.add_argument
    add("--methods", default=",".join(METHOD_KINDS), metavar="A,B,...", help="names (default: all)")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--folds", type=whole_number(2), metavar="N", help="cross-validation: every picture is tested once"
    )
    parts.add_argument(
        "--seeds", type=whole_number(1), default=3, metavar="N", help="one split, so many seeds (default: 3)"
    )
    add("--vary", action="append", default=[], metavar="KEY=A,B,...", help="one row for each value")
    add("--perturbations", default="paper", metavar="A,B,...", help="names and suites (default: paper)")
    add(
        "--runs",
        type=whole_number(1),
        default=3,
        metavar="N",
        help="of every random perturbation (default: 3)",
    )
    add(
        "--figures",
        type=whole_number(1),
        nargs="?",
        const=FIGURE_IMAGES,
        default=0,
        metavar="N",
        help="also draw curvature (on N test pictures of each run, default: %(const)s) and every layer",
    )
    add("--reference", metavar="ROW", help=f"the others are compared with it (default: {REFERENCE})")
    add("--out", type=Path, metavar="DIR", help="default: comparisons/<recipe>")
    return parser
