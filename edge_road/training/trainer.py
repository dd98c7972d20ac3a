"""The training loop: for each epoch train, validate, record, checkpoint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edge_road.clock import Clock, SystemClock
from edge_road.errors import TrainingError
from edge_road.files import write_atomically
from edge_road.nn.model import RoadModel
from edge_road.recipe import Recipe
from edge_road.run_record import WEIGHTS_FILE
from edge_road.training.augment import Augmentation
from edge_road.training.batch_norm import settle_batch_norm
from edge_road.training.batches import Batch, Batches
from edge_road.training.checkpoint import (
    Checkpoint,
    Identity,
    Notes,
    encode_tensors,
    joined,
    newest_checkpoint,
    write_checkpoint,
)
from edge_road.training.journal import EpochRecord, Journal, best_of
from edge_road.training.methods import Method, Step
from edge_road.training.optim import build_optimizer, learning_rate, set_learning_rate
from edge_road.training.progress import Progress
from edge_road.training.snapshot import Snapshot, trained_parameters

SETTLING_IMAGES = 512  # enough for batch-norm statistics, however large the data set


@dataclass
class Tally:
    """Means over the pictures seen so far in an epoch."""

    images: int = 0
    correct: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, logits_BC: Tensor, labels_B: Tensor, losses: dict[str, float]) -> None:
        self.images += len(labels_B)
        self.correct += int((logits_BC.argmax(dim=1) == labels_B).sum())
        for name, value in losses.items():
            self.sums[name] += value * len(labels_B)

    @property
    def accuracy(self) -> float:
        return self.correct / self.images

    @property
    def losses(self) -> dict[str, float]:
        return {name: total / self.images for name, total in self.sums.items()}


class Trainer:
    """Nothing here sees the test split."""

    def __init__(
        self,
        recipe: Recipe,
        model: RoadModel,
        method: Method,
        train: Batches,
        validation: Batches,
        *,
        run: Path,
        identity: Identity,
        progress: Progress,
        clock: Clock | None = None,
    ) -> None:
        self.recipe = recipe
        self.model = model.to(train.device).to(memory_format=torch.channels_last)
        self.method = method.to(train.device)
        self.train, self.validation = train, validation
        self.augmentation = Augmentation(recipe.augment, recipe.seed)
        self.optimizer = build_optimizer(trained_parameters(model, method), recipe.optimizer)
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.snapshot = Snapshot(self.model, self.method, self.optimizer, self.generator)
        self.history: list[EpochRecord] = []
        self.best_weights: dict[str, Tensor] = {}
        self.run, self.identity, self.progress = run, identity, progress
        self.clock = clock or SystemClock()

    def fit(self) -> EpochRecord:
        """Continue from the newest checkpoint, if there is one, to the last epoch; returns the best."""
        self._resume()
        journal = Journal(self.run, self.history)
        for epoch in range(len(self.history), self.recipe.training.epochs):
            lesson = self._timed(self._train_epoch, epoch)
            exam = self._timed(self._validate, epoch)
            self._record(epoch, lesson, exam)
            with _writing(self.run):
                journal.write(self.history)
                self._save()
        journal.close()
        return best_of(self.history)

    def _resume(self) -> None:
        checkpoint = newest_checkpoint(self.run, self.identity, self.progress.note)
        if checkpoint is None:
            return
        self.snapshot.restore(checkpoint)
        self.history = list(checkpoint.notes.history)
        self.best_weights = checkpoint.part("best")
        self._write_best()
        self.progress.note(f"continuing after epoch {len(self.history)}")

    def _timed(self, work: Callable[[int], Tally], epoch: int) -> Tally:
        begin_ns = self.clock.mono_ns()
        tally = work(epoch)
        tally.seconds = (self.clock.mono_ns() - begin_ns) / 1e9
        return tally

    def _train_epoch(self, epoch: int) -> Tally:
        self.model.train()
        self.method.train()
        tally = Tally()
        for number, batch in enumerate(self.train.shuffled(epoch, self.augmentation)):
            self._set_rate(epoch, number)
            step = self.method(self.model, *batch, self.generator)
            _refuse_unless_finite(step.total, f"epoch {epoch + 1}, batch {number + 1} of {len(self.train)}")
            self._update(step)
            tally.add(step.logits_BC, batch.labels_B, _losses(step))
            self.progress.batch(epoch, number + 1, len(self.train), tally.losses, tally.accuracy)
        return tally

    def _set_rate(self, epoch: int, batch: int) -> None:
        progress = epoch + (batch + 0.5) / len(self.train)
        rate = learning_rate(self.recipe.optimizer, self.recipe.training.epochs, progress)
        set_learning_rate(self.optimizer, rate)

    def _update(self, step: Step) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(step.total)
        self.optimizer.step()

    def _validate(self, epoch: int) -> Tally:
        self._settle()
        tally = Tally()
        with torch.inference_mode():
            for batch in self.validation.in_order():
                logits_BC = self.model(batch.images_BCHW).logits_BC
                loss = cross_entropy(logits_BC, batch.labels_B)
                _refuse_unless_finite(loss, f"the validation after epoch {epoch + 1}")
                tally.add(logits_BC, batch.labels_B, {"loss": float(loss)})
        return tally

    def _settle(self) -> None:
        """On the same pictures each time, and as a camera sees them: not augmented."""
        self.model.eval()
        self.method.eval()
        generator = torch.Generator().manual_seed(self.recipe.seed)
        shows: dict[str, Callable[[Batch], object]] = {
            "clean": lambda batch: self.model(batch.images_BCHW),
            "seen": lambda batch: self.method(self.model, *batch, generator),
        }
        if show := shows.get(self.recipe.training.batch_norm):
            wanted = max(1, SETTLING_IMAGES // self.train.batch_size)
            settle_batch_norm(self.model, islice(self.train.shuffled(epoch=0), wanted), show)

    def _record(self, epoch: int, lesson: Tally, exam: Tally) -> None:
        losses = lesson.losses
        record = EpochRecord(
            epoch=epoch + 1,
            learning_rate=self.optimizer.param_groups[0]["lr"],
            loss=losses.pop("loss"),
            terms=losses,
            train_accuracy=lesson.accuracy,
            validation_accuracy=exam.accuracy,
            validation_loss=exam.losses["loss"],
            seconds=lesson.seconds + exam.seconds,
            images_per_s=lesson.images / lesson.seconds,
        )
        is_best = record.is_better_than(best_of(self.history) if self.history else None)
        if is_best:
            self.best_weights = {name: t.clone() for name, t in self.model.state_dict().items()}
        self.history.append(record)
        self.progress.epoch(record, is_best)

    def _save(self) -> None:
        """The checkpoint comes last: it is what counts when the process ends in between."""
        if best_of(self.history) is self.history[-1]:
            self._write_best()
        notes = Notes(identity=self.identity, history=tuple(self.history))
        tensors = {**self.snapshot.take(), **joined(best=self.best_weights)}
        write_checkpoint(self.run, Checkpoint(notes, tensors), keep=self.recipe.training.keep_checkpoints)

    def _write_best(self) -> None:
        write_atomically(self.run / WEIGHTS_FILE, encode_tensors(self.best_weights))


def _losses(step: Step) -> dict[str, float]:
    return {"loss": float(step.total.detach()), **{name: float(term) for name, term in step.terms.items()}}


def _refuse_unless_finite(loss: Tensor, where: str) -> None:
    if not torch.isfinite(loss):
        raise TrainingError(
            "the loss is no longer a finite number",
            where=where,
            got=float(loss.detach()),
            fix="lower optimizer.learning_rate, or warm up with optimizer.warmup_epochs; "
            "the checkpoint of the epoch before is intact",
        )


@contextmanager
def _writing(run: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TrainingError(
            "the run cannot be written",
            where=error.filename or run,
            got=error.strerror or error,
            fix=f"make room, then continue with: python training/train_road.py --run {run}",
        ) from error
