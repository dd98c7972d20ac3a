"""The command line of training: read the recipe, claim a run's folder, train, say what comes next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from edge_road import workspace
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.run_record import CHECKPOINT_FOLDER, load_record
from edge_road.training.command_line import add_recipe_options, wishes_of
from edge_road.training.ranks import Group, group_of_environment
from edge_road.training.recipes import Wishes, read_recipe
from edge_road.training.run_folder import claimed, is_finished, newest_unfinished_run

EXAMPLES = """\
examples:
  python training/train_road.py                    rendered roads, a few minutes
  python training/train_road.py --recipe road_small --data photos \\
      --weights backbone.safetensors
  torchrun --nproc-per-node 8 --max-restarts 3 training/train_road.py \\
      --recipe rscd --run-folder runs/rscd8
"""


def main(arguments: Sequence[str] | None = None) -> int:
    wishes = _parse(arguments)
    recipe = read_recipe(wishes)
    group = group_of_environment()
    run = _folder(wishes, recipe, group)
    with claimed(run, recipe) if group.is_first else nullcontext():
        if not is_finished(run):
            _train(recipe, run, group)
        if group.is_first:
            _tell_finished(run)
    return 0


def _folder(wishes: Wishes, recipe: Recipe, group: Group) -> Path:
    if wishes.run is None and not group.is_alone:
        raise ConfigError(
            "processes that train together need a folder that all of them know",
            got=f"{group.ranks} processes and no --run-folder",
            fix="give --run-folder DIR, so that a restart continues it",
        )
    return wishes.run or workspace.new_run(recipe.name)


def _train(recipe: Recipe, run: Path, group: Group) -> None:
    from edge_road.training.progress import Silence, open_progress  # torch: --help need not wait for it
    from edge_road.training.train import train

    opened = open_progress(recipe.training.epochs) if group.is_first else nullcontext(Silence())
    try:
        with opened as progress:
            train(recipe, run, progress, group=group)
    except KeyboardInterrupt:
        if any((run / CHECKPOINT_FOLDER).glob("*")):
            print(f"to continue: python training/train_road.py --run {run}", file=sys.stderr)
        raise


def _parse(arguments: Sequence[str] | None) -> Wishes:
    parser = argparse.ArgumentParser(
        description="Train a road classifier from a recipe. An interrupted run continues bit for bit.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_recipe_options(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--run",
        "--run-folder",  # torchrun takes --run for an abbreviation of an option of its own
        type=Path,
        metavar="DIR",
        dest="run",
        help="the run's folder: continued if it is there, else begun",
    )
    where.add_argument("--resume", action="store_true", help="continue the newest unfinished run")
    chosen = parser.parse_args(arguments)
    wishes = wishes_of(chosen)
    return replace(wishes, run=newest_unfinished_run()) if chosen.resume else wishes


def _tell_finished(run: Path) -> None:
    record = load_record(run)
    print(
        f"finished: {run}\n"
        f"  best epoch {record.best_epoch} of {record.epochs}, "
        f"validation accuracy {record.validation_accuracy:.1%}\n"
        f"next:\n"
        f"  python training/evaluate_road.py {run}\n"
        f"  python export/to_trt.py {run}"
    )
