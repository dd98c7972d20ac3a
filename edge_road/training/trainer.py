"""The training loop: for each epoch train, validate, record, checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
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
from edge_road.training.distributed import refuse_unless_equal
from edge_road.training.guard import LossIsNoNumber
from edge_road.training.journal import EpochRecord, Journal, best_of, epochs_since_best
from edge_road.training.lesson import Teacher, prepare_model
from edge_road.training.methods import Method, Step
from edge_road.training.optim import learning_rate, set_learning_rate
from edge_road.training.progress import Progress
from edge_road.training.ranks import ALONE, Group
from edge_road.training.snapshot import Snapshot
from edge_road.training.tally import Tally

SETTLING_IMAGES = 512  # enough for batch-norm statistics, however large the data set
LOOK_EVERY = 16  # batches; a look makes a GPU, or other processes, wait


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
        group: Group = ALONE,
        watch: Callable[[Trainer, EpochRecord], None] | None = None,
    ) -> None:
        self.recipe, self.settings = recipe, recipe.training
        prepare_model(model, recipe.training, train.device, group)
        self.model, self.method = model, method.to(train.device)
        self.train, self.validation = train, validation
        self.group, self.watch = group, watch
        self.augmentation = Augmentation(recipe.augment, recipe.seed)
        self.teacher = Teacher(recipe, self.model, self.method, group)
        self.generator = torch.Generator(train.device).manual_seed(recipe.seed)
        self.snapshot = self._snapshot()
        self.history: list[EpochRecord] = []
        self.roll_backs = 0
        self.best_weights: dict[str, Tensor] = {}
        self.run, self.identity, self.progress = run, identity, progress
        self.clock = clock or SystemClock()

    def fit(self) -> EpochRecord:
        """Continue from the newest checkpoint, if there is one, to the last epoch; returns the best."""
        with _writing(self.run):
            self._resume()
            journal = Journal(self.run, self.history) if self.group.is_first else None
        beginning = self._checkpoint(copied=True)
        while not self._is_over():
            try:
                self._epoch(len(self.history))
            except LossIsNoNumber as bad:
                self._roll_back(bad, beginning)
                continue
            if journal:
                with _writing(self.run):
                    journal.write(self.history)
                    self._save()
        if journal:
            journal.close()
        return best_of(self.history)

    def _is_over(self) -> bool:
        patience, done = self.settings.patience, len(self.history)
        return done >= self.settings.epochs or bool(patience and epochs_since_best(self.history) >= patience)

    def _epoch(self, epoch: int) -> None:
        lesson = self._timed(self._train_epoch, epoch)
        with self._weights_for_use():
            exam = self._timed(self._validate, epoch)
            self._record(epoch, lesson, exam)

    def _resume(self) -> None:
        checkpoint = newest_checkpoint(self.run, self.identity, self.progress.note)
        epochs = checkpoint.notes.epoch if checkpoint else 0
        refuse_unless_equal(
            self.group, epochs, "the checkpoint they see", "put the run where every machine reads and writes"
        )
        if checkpoint is None:
            return
        self._restore(checkpoint)
        self.roll_backs = checkpoint.notes.roll_backs
        if self.group.is_first:
            self._write_best()
        self.progress.note(f"continuing after epoch {len(self.history)}")

    def _restore(self, checkpoint: Checkpoint) -> None:
        self.snapshot.restore(checkpoint)
        self.history = list(checkpoint.notes.history)
        self.best_weights = checkpoint.part("best")

    def _roll_back(self, bad: LossIsNoNumber, beginning: Checkpoint) -> None:
        """To the newest checkpoint, or to where this process began, with a lower rate from there on."""
        if self.roll_backs >= self.settings.roll_backs:
            raise bad.for_good(self.roll_backs, epochs=len(self.history))
        self._restore(newest_checkpoint(self.run, self.identity, self.progress.note) or beginning)
        self.roll_backs += 1
        share = self.settings.roll_back_factor**self.roll_backs
        self.progress.note(f"{bad}\nback to epoch {len(self.history)}, with {share:g} of the learning rate")

    def _timed(self, work: Callable[[int], Tally], epoch: int) -> Tally:
        begin_ns = self.clock.mono_ns()
        tally = work(epoch)
        tally.join()
        tally.seconds = (self.clock.mono_ns() - begin_ns) / 1e9
        return tally

    def _train_epoch(self, epoch: int) -> Tally:
        self.model.train()
        self.method.train()
        self._seed_apart(epoch)
        tally = Tally(self.train.device)
        for number, batch in enumerate(self.train.shuffled(epoch, self.augmentation)):
            self._set_rate(epoch, number)
            step = self.teacher.loss(*batch, self.generator)
            tally.add(step.logits_BC, batch.labels_B, {"loss": step.total, **step.terms})
            if self._looks_at(number):
                self._refuse_bad_loss(tally, epoch)
                self.progress.batch(epoch, number + 1, len(self.train), tally.losses, tally.accuracy)
            self._update(step)
        self._refuse_bad_loss(tally, epoch)
        return tally

    def _seed_apart(self, epoch: int) -> None:
        """Processes draw different noise; each epoch anew, so that no state of theirs need be kept."""
        if not self.group.is_alone:
            entropy = np.random.SeedSequence((self.recipe.seed, epoch, self.group.rank))
            seed = int(entropy.generate_state(1)[0])
            torch.manual_seed(seed)
            self.generator.manual_seed(seed)

    def _looks_at(self, number: int) -> bool:
        waits = self.train.device.type != "cpu" or not self.group.is_alone
        return not waits or (number + 1) % LOOK_EVERY == 0

    def _refuse_bad_loss(self, tally: Tally, epoch: int) -> None:
        if (batch := tally.first_bad()) is not None:
            where = f"epoch {epoch + 1}, batch {batch + 1} of {len(self.train)}"
            raise LossIsNoNumber(where, self.train.names(epoch, batch))

    def _set_rate(self, epoch: int, batch: int) -> None:
        progress = epoch + (batch + 0.5) / len(self.train)
        rate = learning_rate(self.recipe.optimizer, self.settings.epochs, progress)
        set_learning_rate(self.teacher.optimizer, rate * self.settings.roll_back_factor**self.roll_backs)

    def _update(self, step: Step) -> None:
        self.teacher.update(step)

    def _weights_for_use(self) -> AbstractContextManager[None]:
        average = self.teacher.average
        return average.worn() if average else nullcontext()

    def _validate(self, epoch: int) -> Tally:
        self._settle()
        tally = Tally(self.validation.device, losses=["loss"])
        with torch.inference_mode():
            for batch in self.validation.in_order():
                logits_BC = self.model(batch.images_BCHW).logits_BC
                tally.add(logits_BC, batch.labels_B, {"loss": cross_entropy(logits_BC, batch.labels_B)})
        if tally.first_bad() is not None:
            raise LossIsNoNumber(f"the validation after epoch {epoch + 1}")
        return tally

    def _settle(self) -> None:
        """On the same pictures each time, and as a camera sees them: not augmented."""
        self.model.eval()
        self.method.eval()
        generator = torch.Generator(self.train.device).manual_seed(self.recipe.seed)
        shows: dict[str, Callable[[Batch], object]] = {
            "clean": lambda batch: self.model(batch.images_BCHW),
            "seen": lambda batch: self.method(self.model, *batch, generator),
        }
        if show := shows.get(self.settings.batch_norm):
            wanted = max(1, SETTLING_IMAGES // self.train.batch_size)
            settle_batch_norm(self.model, islice(self.train.shuffled(epoch=0), wanted), show)

    def _record(self, epoch: int, lesson: Tally, exam: Tally) -> None:
        losses = lesson.losses
        record = EpochRecord(
            epoch=epoch + 1,
            learning_rate=self.teacher.optimizer.param_groups[0]["lr"],
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
        if self.watch:
            self.watch(self, record)

    def _snapshot(self) -> Snapshot:
        ours = self.teacher
        others = {"ema": ours.average} if ours.average else {}
        return Snapshot(
            self.model, self.method, ours.optimizer, self.generator, loss_scale=ours.loss_scale, **others
        )

    def _checkpoint(self, *, copied: bool = False) -> Checkpoint:
        notes = Notes(identity=self.identity, history=tuple(self.history), roll_backs=self.roll_backs)
        tensors = {**self.snapshot.take(), **joined(best=self.best_weights)}
        return Checkpoint(notes, {k: t.clone() for k, t in tensors.items()} if copied else tensors)

    def _save(self) -> None:
        """The checkpoint comes last: it is what counts when the process ends in between."""
        if best_of(self.history) is self.history[-1]:
            self._write_best()
        write_checkpoint(self.run, self._checkpoint(), keep=self.settings.keep_checkpoints)

    def _write_best(self) -> None:
        write_atomically(self.run / WEIGHTS_FILE, encode_tensors(self.best_weights))


@contextmanager
def _writing(run: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or run
        raise TrainingError(
            "the run cannot be written",
            where=place.decode(errors="replace") if isinstance(place, bytes) else place,
            got=error.strerror or error,
            fix=f"make room or restore the folder, then: python training/train_road.py --run {run}",
        ) from error
