"""PGD: within its budget, within [0, 1], and at least as bad as a public implementation's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.nn.attacks import PAPER_BUDGETS, Budget, losses_and_gradients, pgd, project


def small_net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(200, 3),
    ).eval()


def pictures(count: int = 12, seed: int = 1) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(count, 3, 16, 16, generator=draw), torch.arange(count) % 3


def losses(net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    with torch.no_grad():
        return cross_entropy(net(images), labels, reduction="none")


@pytest.mark.parametrize("budget", [*PAPER_BUDGETS, Budget("L2", 2.0, 10)], ids=lambda b: b.name)
@pytest.mark.parametrize("random_start", [False, True])
def test_attacks_stay_in_their_ball_and_in_the_picture_and_raise_the_loss(budget, random_start) -> None:
    net, (images, labels) = small_net(), pictures()
    generator = torch.Generator().manual_seed(0) if random_start else None
    attacked = pgd(net, images, labels, budget, generator)
    shift = (attacked - images).flatten(1)
    length = shift.abs().amax(dim=1) if budget.norm == "Linf" else shift.norm(dim=1)
    assert float(length.max()) <= budget.eps * 1.0001
    assert float(attacked.min()) >= 0.0
    assert float(attacked.max()) <= 1.0
    assert bool((losses(net, attacked, labels) >= losses(net, images, labels)).all()) or random_start
    assert losses(net, attacked, labels).mean() > losses(net, images, labels).mean()


@pytest.mark.parametrize("budget", [Budget("L2", 0.5, 20), Budget("L2", 2.0, 10), Budget("Linf", 8 / 255, 7)])
@pytest.mark.filterwarnings("ignore")
def test_the_loss_is_at_least_that_of_foolbox_under_the_same_budget(budget: Budget) -> None:
    foolbox = pytest.importorskip("foolbox")
    net, (images, labels) = small_net(), pictures(24)
    theirs_model = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.L2PGD if budget.norm == "L2" else foolbox.attacks.LinfPGD
    theirs, _, _ = attack(abs_stepsize=budget.step, steps=budget.steps, random_start=False)(
        theirs_model, images, labels, epsilons=budget.eps
    )
    ours = pgd(net, images, labels, budget)
    assert bool((losses(net, ours, labels) >= losses(net, theirs, labels) - 1e-5).all())


def test_the_step_reaches_the_boundary_of_the_ball() -> None:
    assert Budget("L2", 0.5, 20).step == pytest.approx(0.0625)
    net, (images, labels) = small_net(), pictures()
    shift = (pgd(net, 0.25 + 0.5 * images, labels, Budget("L2", 0.5, 20)) - (0.25 + 0.5 * images)).flatten(1)
    assert shift.norm(dim=1).min() > 0.45


def test_projection_and_scaling() -> None:
    inside = project(torch.full((2, 3, 4, 4), 0.01), Budget("L2", 1.0, 1))
    assert torch.equal(inside, torch.full((2, 3, 4, 4), 0.01))
    outside = project(torch.full((1, 3, 4, 4), 1.0), Budget("L2", 1.0, 1))
    assert float(outside.norm()) == pytest.approx(1.0)
    scaled = Budget("L2", 0.5, 20).scaled_to(192 * 192 * 3)
    assert scaled.eps == pytest.approx(0.5 * 6)
    assert Budget("Linf", 8 / 255, 7).scaled_to(192 * 192 * 3).eps == 8 / 255
    assert Budget("Linf", 8 / 255, 7).name == "PGD-7 Linf 8/255"


def test_gradients_are_those_of_each_picture_alone_and_weights_get_none() -> None:
    net, (images, labels) = small_net(), pictures(3)
    _, together = losses_and_gradients(net, images, labels)
    for i in range(3):
        _, alone = losses_and_gradients(net, images[i : i + 1], labels[i : i + 1])
        assert torch.allclose(together[i], alone[0], atol=1e-7)
    assert all(p.grad is None for p in net.parameters())


def test_the_same_generator_gives_the_same_attack() -> None:
    net, (images, labels) = small_net(), pictures()
    first, second = (
        pgd(net, images, labels, Budget("Linf", 0.1, 3), torch.Generator().manual_seed(7)) for _ in range(2)
    )
    assert torch.equal(first, second)
