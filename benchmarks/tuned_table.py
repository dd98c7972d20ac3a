"""Methods beside each other, each at the better of several settings: chosen fold by fold on validation.

python benchmarks/tuned_table.py COMPARISON COMPARISON ... [--out FOLDER]

Each folder is what `compare_methods.py --folds` made of the same methods, folds and perturbations with one
setting of the recipe, so every method had the same budget. Of each method and fold the run with the best
validation epoch counts (the rule by which training chooses an epoch); test pictures choose nothing.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import CLEAN
from edge_road.files import write_atomically
from edge_road.run_record import METRICS_FILE
from edge_road.training.compare.answers import Answers
from edge_road.training.compare.main import JSON_FILE, MARKDOWN_FILE
from edge_road.training.compare.markdown import to_markdown
from edge_road.training.compare.table import Comparison, build_rows
from edge_road.training.compare.trials import given_answers
from edge_road.training.journal import EpochRecord, best_of


def main() -> None:
    chosen = _parser().parse_args()
    tables = [Comparison.model_validate_json((folder / JSON_FILE).read_bytes()) for folder in chosen.folders]
    first = tables[0]
    names = [row.name for row in first.rows]
    winners = {name: [best_run(chosen.folders, name, n) for n in range(first.parts)] for name in names}
    answers = {name: [_answers(run, first) for run in runs] for name, runs in winners.items()}
    table = first.model_copy(update={"rows": build_rows(answers, first.reference)})
    for name, runs in winners.items():
        counts = Counter(run.parents[1].name for run in runs)
        print(f"{name}: {', '.join(f'{folder} {counts[folder.name]}' for folder in chosen.folders)}")
    print(to_markdown(table))
    if chosen.out:
        write_atomically(chosen.out / JSON_FILE, table.to_json().encode())
        write_atomically(chosen.out / MARKDOWN_FILE, to_markdown(table).encode())


def best_run(folders: Sequence[Path], method: str, fold: int) -> Path:
    """The first of the best, by the epoch that each run would be used with."""
    runs = [folder / "runs" / f"{method}-fold{fold}" for folder in folders]
    epochs = [_best_epoch(run) for run in runs]
    return runs[epochs.index(best_of(epochs))]


def _best_epoch(run: Path) -> EpochRecord:
    lines = (run / METRICS_FILE).read_text().splitlines()
    return best_of([EpochRecord.model_validate_json(line) for line in lines])


def _answers(run: Path, table: Comparison) -> Answers:
    conditions = [name for name in table.conditions if name not in (CLEAN, "mean")]
    if answers := given_answers(run, conditions, table.runs):
        return answers
    raise ConfigError("this run was not asked what the first comparison asks", where=run)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="COMPARISON")
    parser.add_argument("--out", type=Path, help="write table.json and table.md there")
    return parser


if __name__ == "__main__":
    main()
