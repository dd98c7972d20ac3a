"""One trial: train it, unless that is done, and let it answer its test pictures, unless it has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edge_road.datasets import open_dataset
from edge_road.datasets.prepared import prepare_split
from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import CLEAN
from edge_road.nn.predictor import load_run
from edge_road.run_record import CHECKPOINT_FOLDER, RECIPE_FILE, load_recipe, load_record
from edge_road.training.compare.answers import Answers, ask, read_answers, write_answers
from edge_road.training.compare.plan import Trial
from edge_road.training.progress import Progress
from edge_road.training.run_folder import claimed, is_finished
from edge_road.training.train import train

ANSWERS_FILE = "answers.npz"
NOISY = "gaussian_40"  # what the features are drawn under, beside clean
SEED = 0  # of the perturbations: the same for every method


@dataclass(frozen=True)
class Bench:
    """Where trials are made, and what they are asked."""

    folder: Path
    conditions: Sequence[str]
    runs: int

    def run_of(self, trial: Trial) -> Path:
        return self.folder / "runs" / trial.folder

    def is_done(self, trial: Trial) -> bool:
        return (self.run_of(trial) / ANSWERS_FILE).is_file()

    def answers(self, trial: Trial, progress: Progress) -> Answers:
        run = self.run_of(trial)
        _refuse_other_trial(run, trial)
        with claimed(run, trial.recipe):
            if not is_finished(run):
                train(trial.recipe, run, progress)
            # Trained to the end there is nothing to resume, and a table has many runs.
            shutil.rmtree(run / CHECKPOINT_FOLDER, ignore_errors=True)
            return self._ask(trial, run)

    def _ask(self, trial: Trial, run: Path) -> Answers:
        if answers := given_answers(run, self.conditions, self.runs):
            return answers
        dataset = open_dataset(trial.recipe.data)
        test = prepare_split(dataset, dataset.splits["test"], load_record(run).preprocessing)
        drawn = (CLEAN, NOISY) if trial.number == 0 else ()
        answers = ask(load_run(run), test, self.conditions, self.runs, drawn)
        write_answers(run / ANSWERS_FILE, answers, _identity(run, self.conditions, self.runs))
        return answers


def given_answers(run: Path, conditions: Sequence[str], runs: int) -> Answers | None:
    """None where a finished run has not been asked this yet."""
    return read_answers(run / ANSWERS_FILE, _identity(run, conditions, runs))


def _identity(run: Path, conditions: Sequence[str], runs: int) -> str:
    record = load_record(run)
    return json.dumps([record.weights_sha256, record.data_digest, *conditions, runs, SEED])


def _refuse_other_trial(run: Path, trial: Trial) -> None:
    if (run / RECIPE_FILE).is_file() and load_recipe(run) != trial.recipe:
        raise ConfigError(
            "this folder holds a comparison with another recipe",
            where=run / RECIPE_FILE,
            fix="give another --out, or the recipe and options of before",
        )
