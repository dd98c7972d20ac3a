"""Learning rates follow the recipe's schedule; weight decay spares biases and normalisation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from edge_road.recipe import OptimizerSettings
from edge_road.training.optim import build_optimizer, learning_rate, set_learning_rate


def rate(progress: float, epochs: int = 70, **settings: Any) -> float:
    return learning_rate(OptimizerSettings.model_validate(settings), epochs, progress)


def test_the_papers_rate_is_divided_by_ten_at_epoch_fifty() -> None:
    settings = {"learning_rate": 1e-4, "schedule": "step", "milestones": (50,), "factor": 0.1}
    assert rate(0.01, **settings) == rate(49.99, **settings) == 1e-4
    assert rate(50.01, **settings) == rate(69.99, **settings) == pytest.approx(1e-5)


def test_steps_add_up() -> None:
    settings = {"learning_rate": 1.0, "schedule": "step", "milestones": (60, 120, 160), "factor": 0.2}
    assert [rate(e, 200, **settings) for e in (59, 60, 120, 199)] == pytest.approx([1, 0.2, 0.04, 0.008])


def test_cosine_falls_from_the_full_rate_to_zero() -> None:
    rates = [rate(e, 10, learning_rate=2.0, schedule="cosine") for e in (0, 5, 10)]
    assert rates == pytest.approx([2.0, 1.0, 0.0])


@pytest.mark.parametrize("schedule", ["constant", "step", "cosine"])
def test_warm_up_rises_in_a_line_and_meets_the_schedule(schedule: str) -> None:
    settings = {"learning_rate": 1.0, "schedule": schedule, "warmup_epochs": 2.0, "milestones": (50,)}
    assert [rate(e, **settings) for e in (0.5, 1.0, 2.0)] == pytest.approx([0.25, 0.5, 1.0])


def test_constant_stays() -> None:
    assert {rate(e, learning_rate=0.3, schedule="constant") for e in (0, 33, 69)} == {0.3}


@pytest.mark.parametrize(
    ("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)]
)
def test_optimizers_by_name_decay_matrices_and_spare_vectors(
    name: str, kind: type[torch.optim.Optimizer]
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2))
    settings = OptimizerSettings.model_validate({"name": name, "weight_decay": 0.1})
    optimizer = build_optimizer(dict(model.named_parameters()), settings)
    assert type(optimizer) is kind
    decay = {p: group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert {name: decay[p] for name, p in model.named_parameters()} == {
        "0.weight": 0.1,
        "0.bias": 0.0,
        "1.weight": 0.0,
        "1.bias": 0.0,
        "2.weight": 0.1,
        "2.bias": 0.0,
    }


def test_sgd_is_nesterovs_with_the_recipes_momentum() -> None:
    optimizer = build_optimizer(
        dict(nn.Linear(2, 2).named_parameters()), OptimizerSettings(name="sgd", momentum=0.8)
    )
    assert all(group["nesterov"] and group["momentum"] == 0.8 for group in optimizer.param_groups)


def test_frozen_parameters_stay_out() -> None:
    model = nn.Linear(2, 2)
    model.weight.requires_grad = False
    optimizer = build_optimizer(dict(model.named_parameters()), OptimizerSettings())
    assert [p for group in optimizer.param_groups for p in group["params"]] == [model.bias]


def test_new_layers_learn_faster_than_the_backbone() -> None:
    model = nn.ModuleDict({"backbone": nn.Linear(2, 2), "classifier": nn.Linear(2, 2)})
    optimizer = build_optimizer(dict(model.named_parameters()), OptimizerSettings(head_factor=10.0))
    set_learning_rate(optimizer, 0.5)
    rates = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert [rates[p] for p in model["backbone"].parameters()] == [0.5, 0.5]
    assert [rates[p] for p in model["classifier"].parameters()] == [5.0, 5.0]
