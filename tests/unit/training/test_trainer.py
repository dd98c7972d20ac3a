"""The loop learns, keeps the best epoch by validation, stops on a loss that is no number, and resumes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from power_cut import interrupt_after
from safetensors.torch import load_file

from edge_road.errors import TrainingError
from edge_road.training.journal import EpochRecord
from edge_road.training.methods import Step
from edge_road.training.pictures import PicturesInMemory
from edge_road.training.trainer import Trainer

MakeTrainer = Callable[..., Trainer]
SOFTMAX = {"name": "softmax"}


def lines(run: Path) -> list[dict[str, Any]]:
    text = (run / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def untimed(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in ("seconds", "images_per_s")} for line in lines(run)]


def newest_state(run: Path) -> dict[str, torch.Tensor]:
    path = max((run / "last").iterdir())
    return {name: tensor for name, tensor in load_file(path).items() if name != "edge_road_sha256"}


def assert_same_training(first: Path, second: Path) -> None:
    assert (first / "best.safetensors").read_bytes() == (second / "best.safetensors").read_bytes()
    ours, theirs = newest_state(first), newest_state(second)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert untimed(first) == untimed(second)


@pytest.mark.parametrize("method", ["softmax", "discriminative"])
def test_it_learns_coloured_pictures(make_trainer: MakeTrainer, method: str) -> None:
    trainer = make_trainer(
        method={"name": method}, training={"epochs": 12}, optimizer={"learning_rate": 0.05}
    )
    best = trainer.fit()
    assert best.validation_accuracy >= 0.9
    assert trainer.history[-1].loss < trainer.history[0].loss


def test_loss_terms_are_recorded_by_name_and_add_up(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"epochs": 1})
    trainer.fit()
    (line,) = lines(trainer.run)
    assert set(line["terms"]) == {"softmax", "compactness", "margin", "norm_penalty", "alignment"}
    assert sum(line["terms"].values()) == pytest.approx(line["loss"], rel=1e-5)


def test_the_same_recipe_gives_the_same_training(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    for name in ("first", "second"):
        make_trainer(tmp_path / name).fit()
    assert_same_training(tmp_path / "first", tmp_path / "second")


def test_another_seed_gives_another_training(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    make_trainer(tmp_path / "first").fit()
    make_trainer(tmp_path / "second", seed=1).fit()
    assert untimed(tmp_path / "first") != untimed(tmp_path / "second")


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_a_resumed_training_equals_an_uninterrupted_one(
    make_trainer: MakeTrainer, tmp_path: Path, optimizer: str, epochs: int
) -> None:
    settings = {"optimizer": {"name": optimizer, "schedule": "cosine", "warmup_epochs": 1.0}}
    make_trainer(tmp_path / "whole", **settings).fit()
    interrupt_after(make_trainer(tmp_path / "broken", **settings), epochs)
    make_trainer(tmp_path / "broken", **settings).fit()
    assert_same_training(tmp_path / "whole", tmp_path / "broken")


def test_a_damaged_newest_checkpoint_costs_an_epoch_and_nothing_else(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    make_trainer(tmp_path / "whole").fit()
    interrupt_after(make_trainer(tmp_path / "broken"), 3)
    newest = max((tmp_path / "broken" / "last").iterdir())
    newest.write_bytes(newest.read_bytes()[:1000])
    resumed = make_trainer(tmp_path / "broken")
    resumed.fit()
    assert_same_training(tmp_path / "whole", tmp_path / "broken")
    damaged, continuing = resumed.progress.notes  # type: ignore[attr-defined]
    assert "damaged" in damaged
    assert continuing == "continuing after epoch 2"


def test_best_weights_are_those_of_the_best_epoch_by_validation(make_trainer: MakeTrainer) -> None:
    """Epoch 2 is the best; the weights of later epochs must not reach the file."""
    trainer = make_trainer(method=SOFTMAX)
    accuracies = iter([0.5, 0.9, 0.7, 0.9])
    weights = {}

    def scripted(epoch: int, lesson: Any, exam: Any) -> None:
        exam.images, exam._sums = 10, torch.tensor([next(accuracies) * 10, 10.0])
        weights[epoch + 1] = trainer.model.state_dict()["classifier.weight"].clone()
        record(epoch, lesson, exam)

    record, trainer._record = trainer._record, scripted  # type: ignore[method-assign]
    assert trainer.fit().epoch == 2
    assert trainer.progress.best_epochs == [1, 2]  # type: ignore[attr-defined]
    assert torch.equal(load_file(trainer.run / "best.safetensors")["classifier.weight"], weights[2])
    assert not torch.equal(weights[2], weights[4])


def test_a_finished_training_is_not_trained_again(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    best = make_trainer().fit()
    before = (tmp_path / "run" / "best.safetensors").read_bytes()
    (tmp_path / "run" / "best.safetensors").unlink()
    assert make_trainer().fit() == best
    assert (tmp_path / "run" / "best.safetensors").read_bytes() == before, "it comes back from the checkpoint"


def poison(trainer: Trainer, batch: int, value: float) -> None:
    """Make the loss of the given batch, counted over epochs, no number."""
    forward, count = trainer.method.forward, iter(range(1000))

    def poisoned(*arguments: Any) -> Step:
        step: Step = forward(*arguments)
        is_bad = trainer.method.training and next(count) == batch
        return step._replace(total=step.total * value) if is_bad else step

    trainer.method.forward = poisoned  # type: ignore[method-assign]


@pytest.mark.parametrize(("value", "epoch"), [(float("nan"), 2), (float("inf"), 2), (float("nan"), 1)])
def test_a_loss_that_is_no_number_stops_and_names_epoch_and_batch(
    make_trainer: MakeTrainer, value: float, epoch: int
) -> None:
    trainer = make_trainer(method=SOFTMAX, training={"roll_backs": 0})
    poison(trainer, batch=(epoch - 1) * len(trainer.train) + 1, value=value)
    with pytest.raises(TrainingError, match="no longer a finite number") as error:
        trainer.fit()
    assert f"epoch {epoch}, batch 2 of 4" in str(error.value)
    assert ("is intact" in str(error.value)) == (epoch > 1), "in the first epoch there is no checkpoint yet"
    assert error.value.exit_code == 2


def test_after_a_bad_loss_the_last_checkpoint_is_intact_and_training_can_go_on(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    make_trainer(tmp_path / "whole", training={"roll_backs": 0}).fit()
    trainer = make_trainer(tmp_path / "broken", training={"roll_backs": 0})
    poison(trainer, batch=2 * len(trainer.train), value=float("nan"))
    with pytest.raises(TrainingError):
        trainer.fit()
    make_trainer(tmp_path / "broken", training={"roll_backs": 0}).fit()
    assert_same_training(tmp_path / "whole", tmp_path / "broken")


def test_a_disk_that_fills_up_is_told_and_the_last_checkpoint_stays(
    make_trainer: MakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_trainer(tmp_path / "whole").fit()
    trainer = make_trainer(tmp_path / "full")
    sync = os.fsync

    def full(descriptor: int) -> None:
        if len(trainer.history) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TrainingError, match="the run cannot be written") as error:
        trainer.fit()
    assert "No space left on device" in str(error.value)
    assert f"--run {tmp_path / 'full'}" in str(error.value)
    assert max(path.name for path in (tmp_path / "full" / "last").iterdir()) == "epoch-00002.safetensors"
    monkeypatch.setattr(os, "fsync", sync)
    make_trainer(tmp_path / "full").fit()
    assert_same_training(tmp_path / "whole", tmp_path / "full")


def test_a_disk_that_is_full_from_the_start_is_told_with_the_command_to_continue(
    make_trainer: MakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    interrupt_after(make_trainer(tmp_path / "begun"), 2)
    monkeypatch.setattr(os, "fsync", full)
    for run in (tmp_path / "begun", tmp_path / "new"):
        with pytest.raises(TrainingError, match="the run cannot be written") as error:
            make_trainer(run).fit()
        assert f"--run {run}" in error.value.details["to do"]


def test_weights_that_break_in_validation_stop_it_too(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"epochs": 1, "roll_backs": 1})
    trainer.train = type(trainer.train)(trainer.train.pictures, batch_size=30)  # one update
    update = trainer._update

    def broken_update(step: Step) -> None:
        update(step)
        with torch.no_grad():
            trainer.model.classifier.bias.fill_(float("inf"))

    trainer._update = broken_update  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="finite") as error:
        trainer.fit()
    assert "the validation after epoch 1" in str(error.value)


def test_the_rate_follows_the_schedule(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(
        optimizer={"schedule": "step", "milestones": (2,), "factor": 0.1, "learning_rate": 0.01}
    )
    trainer.fit()
    assert [line["learning_rate"] for line in lines(trainer.run)] == pytest.approx([0.01, 0.01, 0.001, 0.001])


def test_statistics_for_use_are_gathered_as_the_recipe_says(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    """The noisy copies of the discriminative method are brighter at the dark end: clipping at zero."""
    means = {}
    for kind in ("running", "clean", "seen"):
        trainer = make_trainer(tmp_path / kind, training={"epochs": 1, "batch_norm": kind})
        trainer.fit()
        assert not any(module.training for module in trainer.model.modules())
        means[kind] = load_file(tmp_path / kind / "best.safetensors")["trunk.1.running_mean"]
    assert not torch.allclose(means["running"], means["clean"])
    assert not torch.allclose(means["seen"], means["clean"])


def test_settling_leaves_centroids_and_random_states_alone(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"epochs": 1, "batch_norm": "seen"})
    trainer._train_epoch(0)
    before = trainer.snapshot.take()
    kept = {name: t.clone() for name, t in before.items() if not name.startswith("model/trunk.1.")}
    trainer._settle()
    after = trainer.snapshot.take()
    assert all(torch.equal(tensor, after[name]) for name, tensor in kept.items())


def test_ties_go_to_the_lower_loss(
    make_trainer: MakeTrainer, pictures: Callable[..., PicturesInMemory]
) -> None:
    trainer = make_trainer(training={"epochs": 6}, pictures=pictures(24))
    best = trainer.fit()
    rivals: list[EpochRecord] = [
        record for record in trainer.history if record.validation_accuracy == best.validation_accuracy
    ]
    assert best.validation_loss == min(record.validation_loss for record in rivals)
    assert best.validation_accuracy == max(record.validation_accuracy for record in trainer.history)
