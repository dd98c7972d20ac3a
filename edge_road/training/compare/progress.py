"""What a person sees of a comparison: a line for each trial, and how long the rest will take."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from edge_road.clock import Clock, SystemClock
from edge_road.errors import EdgeRoadError
from edge_road.evaluation.perturbations import CLEAN
from edge_road.training.compare.answers import Answers, conditions_of
from edge_road.training.compare.plan import Trial
from edge_road.training.journal import EpochRecord


class TimeLeft:
    """A trial to come is expected to take as long as its row did before, else as the mean of all."""

    def __init__(self, to_do: Sequence[Trial]) -> None:
        self.to_do = list(to_do)
        self.seconds: dict[str, float] = {}

    def finished(self, trial: Trial, seconds: float) -> None:
        if trial in self.to_do:
            self.to_do.remove(trial)
            self.seconds[trial.row] = seconds

    @property
    def left_s(self) -> float | None:
        """None before the first trial has shown how long one takes."""
        if not self.seconds:
            return None if self.to_do else 0.0
        usual = float(np.mean(list(self.seconds.values())))
        return sum(self.seconds.get(trial.row, usual) for trial in self.to_do)

    def given_up(self, trial: Trial) -> None:
        """Nor are the other trials of its row trained."""
        self.to_do = [other for other in self.to_do if other.row != trial.row]


class TrialProgress:
    """One line that the next one replaces; what stays is the line of a finished trial."""

    def __init__(self, trials: Sequence[Trial], to_do: Sequence[Trial], clock: Clock | None = None) -> None:
        self.trials, self.clock = list(trials), clock or SystemClock()
        self.time = TimeLeft(to_do)
        self._epochs, self._begin_ns = 0, 0

    def begin(self, trial: Trial) -> None:
        self._epochs = trial.recipe.training.epochs
        self._begin_ns = self.clock.mono_ns()
        self._title = f"{self.trials.index(trial) + 1}/{len(self.trials)}  {trial.title}"
        self._show("preparing the pictures")

    def finish(self, trial: Trial, answers: Answers) -> None:
        self.time.finished(trial, (self.clock.mono_ns() - self._begin_ns) / 1e9)
        left = self.time.left_s
        self._show("")
        ending = "" if left is None else f"; {_duration(left)} left"
        print(f"{self._title}: {_summary(answers)}{ending}", flush=True)

    def give_up(self, trial: Trial, error: EdgeRoadError) -> None:
        self.time.given_up(trial)
        self._show("")
        print(f"{self._title}: {error.what}; the tables will be without {trial.row}", flush=True)

    def note(self, text: str) -> None:
        pass

    def batch(
        self, epoch: int, batch: int, batches: int, losses: Mapping[str, float], accuracy: float
    ) -> None:
        self._show(f"epoch {epoch + 1}/{self._epochs}, batch {batch}/{batches}, loss {losses['loss']:.3f}")

    def epoch(self, record: EpochRecord, is_best: bool) -> None:
        self._show(f"epoch {record.epoch}/{self._epochs}, validation {record.validation_accuracy:.1%}")

    def _show(self, text: str) -> None:
        if sys.stderr.isatty():
            print(
                f"\r\x1b[K{self._title}: {text}" if text else "\r\x1b[K", end="", file=sys.stderr, flush=True
            )


def _summary(answers: Answers) -> str:
    clean = f"clean {answers.right[CLEAN].mean():.1%}"
    perturbed = [answers.right[name].mean() for name in conditions_of(answers)]
    return f"{clean}, perturbed {np.mean(perturbed):.1%}" if perturbed else clean


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
