"""Tuning: many short trainings that vary a recipe, hopeless ones stopped early, the best one written.

Each command is a worker; as many as wanted, on as many machines as wanted, share a study by its
storage. Trials are chosen by a tree-structured Parzen estimator (Bergstra et al. 2011) and pruned when
they fall below the median of the others at the same epoch. All is judged on validation pictures.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from typing import Any

from edge_road import workspace
from edge_road.config import StrictModel, load_settings, settings_digest, write_settings
from edge_road.datasets import open_dataset
from edge_road.errors import ConfigError, TrainingError
from edge_road.recipe import Recipe
from edge_road.recipe_data import DataSettings
from edge_road.run_record import CHECKPOINT_FOLDER
from edge_road.training.command_line import add_recipe_options, whole_number, wishes_of
from edge_road.training.recipes import Wishes, read_recipe
from edge_road.training.run_folder import claimed
from edge_road.training.search import Range, parse_ranges
from edge_road.training.study_locks import alone_in, hold_trial, is_abandoned, release_trial

BEST_FILE = "best.toml"
EXAMPLE = """\
example, in as many terminals as there are cores or GPUs to spare:
  python training/tune_road.py --recipe road_small --data photos --trials 40 \\
      --over method.delta_d=0.5:6 --over method.sigma=log:0.02:0.5 \\
      --under clean,gaussian_40
  python training/train_road.py --recipe studies/road_small/best.toml
"""


class SearchSpace(StrictModel):
    """A file for --space."""

    over: dict[str, str]
    """key of the recipe -> range, as after the = of --over"""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    tuning = Tuning(wishes_of(chosen), _ranges(chosen), tuple(chosen.under.split(",")), chosen.trials)
    tuning.work(chosen.study, chosen.storage)
    return 0


def _ranges(chosen: argparse.Namespace) -> tuple[Range, ...]:
    listed = load_settings(SearchSpace, chosen.space).over if chosen.space else {}
    ranges = parse_ranges([*(f"{key}={value}" for key, value in listed.items()), *chosen.over])
    if not ranges:
        raise ConfigError(
            "nothing to vary", where="--over", fix="for example: --over method.sigma=log:0.02:0.5"
        )
    return ranges


class Tuning:
    """One worker's part of a study."""

    def __init__(
        self, wishes: Wishes, ranges: tuple[Range, ...], under: tuple[str, ...], trials: int
    ) -> None:
        self.wishes, self.ranges, self.under, self.trials = wishes, ranges, under, trials
        self.recipe = read_recipe(wishes)
        self._classes = cache(_count_classes)
        for found in ranges:
            for end in found.ends():
                self._usable_with([f"{found.key}={end}"])
        _refuse_unknown_perturbations(under)

    def work(self, name: str | None, storage: str | None) -> None:
        self.folder = workspace.home() / "studies" / _plain_name(name or self.recipe.name)
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone_in(self.folder):
            study = self._open(storage or f"sqlite:///{self.folder / 'study.db'}")
        while (trial := self._next(study)) is not None:
            self._try(study, trial)
            release_trial(self.folder, trial.number, self.held)
            self._write_best(study)
        self._tell(study)

    def _open(self, storage: str) -> Any:
        import optuna  # slow: --help need not wait for it
        from sqlalchemy.exc import SQLAlchemyError

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        startup = max(1, min(5, self.trials // 4))
        pruner = optuna.pruners.MedianPruner(startup, n_warmup_steps=self.recipe.training.epochs // 4)
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=self.folder.name,
                direction="maximize",
                pruner=pruner,
                load_if_exists=True,
            )
        except (optuna.exceptions.OptunaError, SQLAlchemyError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ConfigError("the study cannot be opened", where=storage, got=reason) from None
        self._refuse_other_question(study)
        if not study.trials:
            study.enqueue_trial(self._own_values())
        return study

    def _refuse_other_question(self, study: Any) -> None:
        """Trials of another recipe or other ranges would mislead the choice of the next."""
        asked = {"recipe": settings_digest(self.recipe), "under": list(self.under), "over": repr(self.ranges)}
        found = study.user_attrs.get("asked")
        if found is None:
            study.set_user_attr("asked", asked)
        elif found != asked:
            raise ConfigError(
                "this study asks something else",
                where=self.folder.name,
                got=f"another {' and '.join(key for key in asked if asked[key] != found.get(key))}",
                fix="give this one a name of its own with --study",
            )

    def _own_values(self) -> dict[str, Any]:
        """The recipe as it is goes first: the others are measured against it."""
        values: dict[str, Any] = {}
        for found in self.ranges:
            value: Any = reduce(getattr, found.key.split("."), self.recipe)
            if found.holds(value):
                values[found.key] = str(value) if found.kind == "choice" else value
        return values

    def _next(self, study: Any) -> Any:
        """A trial of our own while there are fewer than wanted; failed ones do not count."""
        with alone_in(self.folder):
            self._give_up_abandoned(study)
            states = [trial.state.name for trial in study.get_trials(deepcopy=False)]
            taken = sum(state in ("RUNNING", "COMPLETE", "PRUNED") for state in states)
            if max(taken, states.count("FAIL")) >= self.trials:
                return None
            trial = study.ask()
            self.held = hold_trial(self.folder, trial.number)
            return trial

    def _give_up_abandoned(self, study: Any) -> None:
        for trial in study.get_trials(deepcopy=False):
            if trial.state.name == "RUNNING" and is_abandoned(self.folder, trial.number):
                study.tell(trial.number, state=type(trial.state).FAIL)
                print(f"trial {trial.number}: its worker has died", flush=True)

    def _try(self, study: Any, trial: Any) -> None:
        import optuna

        run = self.folder / f"trial-{trial.number:04d}"
        failed, pruned = optuna.trial.TrialState.FAIL, optuna.trial.TrialState.PRUNED
        try:
            value = self._train(study, trial, run)
        except optuna.TrialPruned:
            study.tell(trial, state=pruned)
            print(f"trial {trial.number}: pruned {_shown(trial.params)}", flush=True)
            shutil.rmtree(run, ignore_errors=True)
        except TrainingError as error:
            study.tell(trial, state=failed)
            print(f"trial {trial.number}: {error.what} {_shown(trial.params)}", flush=True)
        except BaseException:
            study.tell(trial, state=failed)
            raise
        else:
            study.tell(trial, value)
            print(f"trial {trial.number}: {value:.4f} {_shown(trial.params)}", flush=True)
            shutil.rmtree(run / CHECKPOINT_FOLDER, ignore_errors=True)

    def _train(self, study: Any, trial: Any, run: Path) -> float:
        import optuna

        from edge_road.training.progress import Silence
        from edge_road.training.train import train
        from edge_road.training.trial_score import TrialScore

        # By the trial's number, so that parallel workers never draw alike and one worker repeats itself.
        startup = max(2, min(10, self.trials // 3))
        study.sampler = optuna.samplers.TPESampler(
            seed=(self.recipe.seed * 100_003 + trial.number) % 2**32,
            n_startup_trials=startup,
            multivariate=False,
            constant_liar=True,
        )
        try:
            recipe = self._usable_with([f"{r.key}={r.suggest(trial)}" for r in self.ranges])
        except ConfigError as error:  # each value is right, but not beside the others
            raise TrainingError(error.what) from error
        score = TrialScore(trial, self.under)
        shutil.rmtree(run, ignore_errors=True)
        with claimed(run, recipe):
            train(recipe, run, Silence(), watch=score)
        return score.best

    def _recipe_with(self, overrides: list[str]) -> Recipe:
        return read_recipe(replace(self.wishes, overrides=[*self.wishes.overrides, *overrides]))

    def _usable_with(self, overrides: list[str]) -> Recipe:
        """Refuses what no trial could use, also where only the number of classes tells."""
        from edge_road.training.methods import build_method

        recipe = self._recipe_with(overrides)
        build_method(recipe.method, self._classes(recipe.data), recipe.model.features)
        return recipe

    def _write_best(self, study: Any) -> None:
        """Again if another worker has found a better one meanwhile."""
        written = None
        while (best := _best(study)) is not None and best.number != written:
            recipe = self._recipe_with([f"{key}={value}" for key, value in best.params.items()])
            tuned = recipe.model_copy(update={"name": f"{self.recipe.name[:58]}_tuned"})
            write_settings(tuned, self.folder / BEST_FILE)
            written = best.number

    def _tell(self, study: Any) -> None:
        states = [trial.state.name for trial in study.get_trials(deepcopy=False)]
        counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in sorted(set(states)))
        best = _best(study)
        if best is None:
            raise TrainingError("no trial came to its end", where=self.folder, got=counts)
        print(
            f"{len(states)} trials: {counts}\n"
            f"best: trial {best.number}, {best.value:.4f} {_shown(best.params)}\n"
            f"next:\n  python training/train_road.py --recipe {self.folder / BEST_FILE}"
        )


def _count_classes(data: DataSettings) -> int:
    return len(open_dataset(data).classes)


def _best(study: Any) -> Any:
    done = [trial for trial in study.get_trials(deepcopy=False) if trial.state.name == "COMPLETE"]
    return max(done, key=lambda trial: (trial.value, -trial.number), default=None)


def _shown(parameters: dict[str, Any]) -> str:
    return " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in parameters.items())


def _plain_name(name: str) -> str:
    if name in (".", "..") or "/" in name:
        raise ConfigError(
            "a study is a name, and its folder lies in studies/",
            where="--study",
            got=name,
            fix="leave out the path",
        )
    return name


def _refuse_unknown_perturbations(names: Sequence[str]) -> None:
    from edge_road.evaluation.perturbations import CLEAN, perturbation

    for name in names:
        if name != CLEAN:
            perturbation(name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Find better numbers for a recipe by many short trainings.\nEach command is a worker.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_recipe_options(parser)
    add = parser.add_argument
    add(
        "--over", action="append", default=[], metavar="KEY=RANGE", help="low:high, log:low:high, int:.., a,b"
    )
    add("--space", type=Path, metavar="FILE", help="the same as TOML: [over] 'method.sigma' = 'log:0.02:0.5'")
    add(
        "--under",
        default="clean",
        metavar="NAMES",
        help="judge by the mean accuracy under these, e.g. clean,stripes",
    )
    add("--trials", type=whole_number(1), default=40, metavar="N", help="of the whole study (default: 40)")
    add("--study", metavar="NAME", help="its name and folder in studies/ (default: the recipe's)")
    add("--storage", metavar="URL", help="a database that workers share (default: SQLite in the folder)")
    return parser
