"""The plainest method, and what every method promises the trainer."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from pydantic import TypeAdapter
from torch import nn
from torch.nn.functional import cross_entropy

from edge_road.config import StrictModel
from edge_road.nn.backbone import Backbone
from edge_road.nn.model import RoadModel
from edge_road.recipe_method import MethodSettings, SoftmaxMethod
from edge_road.training.methods import METHODS, Step, build_method

UNION = get_args(get_args(MethodSettings)[0])


def small_model() -> RoadModel:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return RoadModel(Backbone("small", module, 8, (0.5,) * 3, (0.5,) * 3), features=6, classes=3)


def step_with(settings: StrictModel, model: RoadModel, seed: int = 0) -> Step:
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(12, 3, 8, 8, generator=generator)
    method = build_method(settings, classes=3, features=6)  # type: ignore[arg-type]
    step = method(model, images, torch.arange(12) % 3, generator)
    assert isinstance(step, Step)
    return step


def test_every_method_of_the_recipe_can_be_built_and_no_other() -> None:
    names = {settings.model_fields["name"].annotation for settings in UNION}
    assert {get_args(name)[0] for name in names} == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_methods_terms_add_up_and_only_the_total_has_a_gradient(name: str) -> None:
    settings = TypeAdapter(MethodSettings).validate_python({"name": name})
    model = small_model()
    step = step_with(settings, model)
    assert torch.allclose(sum(step.terms.values(), torch.zeros(())), step.total, atol=1e-6)
    assert not any(tensor.requires_grad for tensor in (*step.terms.values(), step.logits_BC))
    step.total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert step.logits_BC.shape == (12, 3)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_random_by_its_generator_alone(name: str) -> None:
    settings = TypeAdapter(MethodSettings).validate_python({"name": name})
    totals = []
    for seed in (1, 2):
        model = small_model()
        torch.manual_seed(seed)
        totals.append(step_with(settings, model, seed=7).total)
    assert torch.equal(totals[0], totals[1])


def test_softmax_is_cross_entropy_of_the_clean_images() -> None:
    model = small_model()
    step = step_with(SoftmaxMethod(name="softmax"), model)
    assert list(step.terms) == ["softmax"]
    assert torch.equal(step.total, cross_entropy(step.logits_BC, torch.arange(12) % 3))
