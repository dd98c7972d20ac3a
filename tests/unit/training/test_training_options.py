"""What a recipe's [training] can ask for: averages, early stop, clipping, roll-back, balance, precision."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from power_cut import interrupt_after
from safetensors.torch import load_file
from small_methods import LABELS, Recorder, method_of, seeded
from torch import nn

from edge_road.errors import ConfigError, TrainingError
from edge_road.recipe import Recipe
from edge_road.training.batches import Batches
from edge_road.training.ema import WeightAverage
from edge_road.training.methods import METHODS, Step
from edge_road.training.pictures import PicturesInMemory
from edge_road.training.precision import LossScale, autocast_type
from edge_road.training.trainer import Trainer

MakeTrainer = Callable[..., Trainer]
SOFTMAX = {"name": "softmax"}


def rates(trainer: Trainer) -> list[float]:
    lines = (trainer.run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["learning_rate"] for line in lines]


def poison(trainer: Trainer, batches: set[int]) -> None:
    """The losses of these training batches, counted over everything that is tried, are not numbers."""
    forward, count = trainer.method.forward, iter(range(10_000))

    def poisoned(*arguments: Any) -> Step:
        step: Step = forward(*arguments)
        is_bad = trainer.method.training and next(count) in batches
        return step._replace(total=step.total * float("nan")) if is_bad else step

    trainer.method.forward = poisoned  # type: ignore[method-assign]


# Moving average


def test_the_average_is_the_weighted_sum_of_all_earlier_weights() -> None:
    layer = nn.Linear(1, 1, bias=False)
    average = WeightAverage(layer, decay=0.5)
    expected, values = float(layer.weight.detach()), [1.0, -2.0, 4.0]
    for step, value in enumerate(values, start=1):
        layer.weight.data.fill_(value)
        average.update()
        decay = min(0.5, step / (9 + step))
        expected = decay * expected + (1 - decay) * value
    with average.worn():
        assert float(layer.weight.detach()) == pytest.approx(expected)
    assert float(layer.weight.detach()) == 4.0


def test_the_finished_weights_are_averages_and_training_goes_on_with_its_own(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    settings = {"epochs": 2, "ema_decay": 0.9}
    averaging = make_trainer(tmp_path / "averaging", training=settings)
    averaging.fit()
    plain = make_trainer(tmp_path / "plain", training={"epochs": 2})
    plain.fit()
    ours, theirs = averaging.model.state_dict(), plain.model.state_dict()
    assert torch.equal(ours["classifier.weight"], theirs["classifier.weight"]), "the same steps"
    kept = load_file(tmp_path / "averaging" / "best.safetensors")
    assert not torch.equal(kept["classifier.weight"], ours["classifier.weight"])
    assert kept.keys() == load_file(tmp_path / "plain" / "best.safetensors").keys()


@pytest.mark.parametrize("options", [{"ema_decay": 0.9, "clip_norm": 0.5}, {"precision": "fp16"}])
def test_a_resumed_training_with_options_equals_an_uninterrupted_one(
    make_trainer: MakeTrainer, tmp_path: Path, options: dict[str, Any]
) -> None:
    make_trainer(tmp_path / "whole", training=options).fit()
    interrupt_after(make_trainer(tmp_path / "broken", training=options), 2)
    make_trainer(tmp_path / "broken", training=options).fit()
    for name in ("best.safetensors", "last/epoch-00004.safetensors"):
        ours, theirs = load_file(tmp_path / "whole" / name), load_file(tmp_path / "broken" / name)
        assert all(torch.equal(ours[key], theirs[key]) for key in ours if key != "edge_road_sha256")


# Early stop


def test_patience_ends_a_training_that_no_longer_improves(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"epochs": 50, "patience": 3}, optimizer={"learning_rate": 1e-9})
    best = trainer.fit()
    assert len(trainer.history) == best.epoch + 3 < 50
    again = make_trainer(training={"epochs": 50, "patience": 3}, optimizer={"learning_rate": 1e-9})
    assert again.fit() == best
    assert len(again.history) == len(trainer.history), "a finished one is not continued"


# Clipping


def test_gradients_longer_than_the_limit_are_shortened(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(training={"clip_norm": 1e-3})
    (batch, *_) = trainer.train.shuffled(0)
    trainer.teacher.update(trainer.teacher.loss(*batch, trainer.generator))
    lengths = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
    assert float(torch.stack(lengths).norm()) == pytest.approx(1e-3, rel=1e-3)


# Losses that are no numbers


def test_a_bad_loss_goes_back_to_the_last_checkpoint_and_lowers_the_rate(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(method=SOFTMAX)
    poison(trainer, {len(trainer.train) + 1})
    trainer.fit()
    assert rates(trainer) == pytest.approx([0.01, 0.005, 0.005, 0.005])
    (note,) = trainer.progress.notes  # type: ignore[attr-defined]
    assert "epoch 2, batch 2 of 4" in note
    assert "back to epoch 1, with 0.5 of the learning rate" in note


def test_a_bad_loss_in_the_first_epoch_goes_back_to_the_beginning(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    options = {"roll_back_factor": 1.0}
    trainer = make_trainer(tmp_path / "poisoned", training=options)
    poison(trainer, {2})
    trainer.fit()
    make_trainer(tmp_path / "whole", training=options).fit()
    names = [tmp_path / run / "best.safetensors" for run in ("poisoned", "whole")]
    assert names[0].read_bytes() == names[1].read_bytes(), "weights, momenta and random states came back"


def test_after_its_roll_backs_it_stops_and_names_epoch_batch_and_files(
    make_trainer: MakeTrainer, pictures: Callable[..., PicturesInMemory]
) -> None:
    named = pictures(30)
    named.keys = tuple(f"wet/{number}.jpg" for number in range(30))
    trainer = make_trainer(pictures=named, training={"roll_backs": 2})
    poison(trainer, set(range(5, 1000)))
    with pytest.raises(TrainingError, match="after 2 roll-backs") as error:
        trainer.fit()
    text = str(error.value)
    assert "epoch 2, batch 1 of 4" in text
    shown = text.split("the pictures ")[1].splitlines()[0].split(", ")
    assert shown == trainer.train.names(1, 0)
    assert len(shown) == 8


def test_roll_backs_are_remembered_by_checkpoints(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    trainer = make_trainer(method=SOFTMAX)
    poison(trainer, {1})
    interrupt_after(trainer, 2)
    resumed = make_trainer(method=SOFTMAX)
    resumed.fit()
    assert rates(resumed) == pytest.approx([0.005] * 4)


# Balance


def uneven_pictures() -> PicturesInMemory:
    labels_N = np.array([0] * 40 + [1] * 12 + [2] * 8)
    return PicturesInMemory(np.arange(60, dtype=np.uint8)[:, None, None, None].repeat(3, 3), labels_N)


def test_a_balanced_epoch_shows_every_class_equally_often_and_repeats_get_views_of_their_own() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.views: list[tuple[int, int]] = []

        def view(self, image: Any, epoch: int, index: int) -> Any:
            self.views.append((epoch, index))
            return image

    recorder: Any = Recorder()
    batches = Batches(uneven_pictures(), 9, sampling="balanced")
    labels = [batch.labels_B for batch in batches.shuffled(3, recorder)]
    assert torch.cat(labels).bincount().tolist() == [20, 20, 20]
    assert all(batch.bincount(minlength=3).tolist() == [3, 3, 3] for batch in labels[:-1])
    assert len(set(recorder.views)) == 60


def test_two_processes_share_every_batch() -> None:
    pictures = uneven_pictures()
    whole = [sorted(b.images_BCHW[:, 0, 0, 0].tolist()) for b in Batches(pictures, 8, 3).shuffled(1)]
    halves = [list(Batches(pictures, 8, 3, rank=rank, ranks=2).shuffled(1)) for rank in range(2)]
    joined = [
        sorted(torch.cat([first.images_BCHW, second.images_BCHW])[:, 0, 0, 0].tolist())
        for first, second in zip(*halves, strict=True)
    ]
    assert joined == whole
    shown = [b.labels_B for rank in range(2) for b in Batches(pictures, 8, rank=rank, ranks=2).in_order()]
    assert torch.cat(shown).bincount().tolist() == [40, 12, 8]


def test_class_weights_make_a_rare_class_count_as_much_as_a_common_one(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer(method=SOFTMAX)
    logits_BC = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    labels_B = torch.tensor([0, 0, 0, 1])
    plain = trainer.method.cross_entropy(logits_BC, labels_B)
    trainer.method.class_weights_C = torch.tensor([1.0, 3.0, 0.0])
    losses_B = -logits_BC.log_softmax(dim=1)[range(4), labels_B]
    expected = (losses_B[:3].mean() + losses_B[3]) / 2
    torch.testing.assert_close(trainer.method.cross_entropy(logits_BC, labels_B), expected)
    torch.testing.assert_close(plain, losses_B.mean())
    assert "class_weights_C" not in trainer.method.state_dict()


# Batch norm


def test_separate_statistics_see_clean_passes_alone(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    """Like the statistics of a training that has no noisy pass at all, weights being equal."""
    kept = {}
    for kind, method in (
        ("separate", {"name": "discriminative"}),
        ("running", {"name": "discriminative"}),
        ("alone", {"name": "discriminative", "lambda_align": 0.0}),
    ):
        settings = {"epochs": 1, "batch_norm": "separate" if kind == "separate" else "running"}
        trainer = make_trainer(
            tmp_path / kind, method=method, training=settings, optimizer={"learning_rate": 1e-12}
        )
        trainer.fit()
        kept[kind] = trainer.model.state_dict()["trunk.1.running_mean"]
    torch.testing.assert_close(kept["separate"], kept["alone"])
    assert not torch.allclose(kept["running"], kept["alone"])


def test_separate_statistics_need_separate_passes() -> None:
    with pytest.raises(ValueError, match=r"needs method\.passes = 'two'"):
        Recipe.model_validate(
            {
                "name": "a",
                "training": {"batch_norm": "separate"},
                "method": {"name": "discriminative", "passes": "joint"},
            }
        )


@pytest.mark.parametrize("name", sorted(METHODS))
def test_separate_statistics_need_clean_passes(name: str) -> None:
    """Which methods have them is seen in what reaches the network."""
    images = torch.rand(12, 3, 8, 8, generator=seeded(5))
    model, seen = Recorder(), []
    model.backbone[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    method_of(name)(model, images, LABELS, seeded())
    shows_clean = any(torch.equal(found, (images - model.mean) / model.std) for found in seen)
    sections = {"training": {"batch_norm": "separate"}, "method": {"name": name}}
    with nullcontext() if shows_clean else pytest.raises(ValueError, match="needs clean passes"):
        Recipe.model_validate({"name": "a", **sections})


# Precision


def test_auto_stays_in_float32_on_a_cpu() -> None:
    cpu = torch.device("cpu")
    assert autocast_type("auto", cpu) is autocast_type("float32", cpu) is None
    assert autocast_type("bf16", cpu) is torch.bfloat16
    assert LossScale(torch.bfloat16, cpu).tensors() == {}


def test_only_fp16_scales_its_loss_and_the_scale_is_kept() -> None:
    scale = LossScale(torch.float16, torch.device("cpu"))
    scale.scaler.scale(torch.ones(1))
    scale.scaler.update(new_scale=8.0)
    again = LossScale(torch.float16, torch.device("cpu"))
    again.restore(scale.tensors())
    assert again.scaler.state_dict() == scale.scaler.state_dict()
    assert scale.tensors()["scale"] == 8.0


def test_compile_is_asked_of_the_model_itself(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place: names in the state dict stay as they are."""
    asked: list[nn.Module] = []
    monkeypatch.setattr(nn.Module, "compile", lambda module: asked.append(module))
    trainer = make_trainer(training={"compile": True})
    assert asked == [trainer.model]


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_training_is_one_graph_and_learns_what_the_plain_one_does(
    make_trainer: MakeTrainer, tmp_path: Path
) -> None:
    """Estimating batch-norm statistics would break the graph; that runs as it is written."""
    from torch._dynamo.utils import counters

    torch.compiler.reset()
    counters.clear()
    best = {}
    for compiled in (True, False):
        settings = {"training": {"epochs": 2, "compile": compiled}, "optimizer": {"name": "sgd"}}
        trainer = make_trainer(tmp_path / str(compiled), method=SOFTMAX, **settings)
        trainer.model.trunk[3] = nn.Identity()  # dropout draws otherwise once compiled
        trainer.fit()
        best[compiled] = trainer.model.state_dict()
    assert counters["stats"]["unique_graphs"] > 0
    assert not counters["graph_break"]
    torch.testing.assert_close(best[True], best[False], rtol=1e-3, atol=1e-4)


def test_a_wrong_setting_is_refused_by_name() -> None:
    from edge_road.config import check_settings

    with pytest.raises(ConfigError, match=r"training\.ema_decay"):
        check_settings(Recipe, {"name": "a", "training": {"ema_decay": 1.0}}, where="here")
