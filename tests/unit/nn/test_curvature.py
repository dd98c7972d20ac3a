"""Input curvature: against exact Hessians, and the groupings of Figures 8 to 10."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.nn.curvature import (
    count_correlation,
    curvature_by_count,
    input_curvature,
    lowest_share,
    retained_accuracy,
)
from edge_road.nn.surface import loss_surface


def smooth_net() -> nn.Sequential:
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 4, 3, stride=2), nn.Softplus(), nn.Flatten(), nn.Linear(36, 8), nn.Tanh())
    return nn.Sequential(*layers, nn.Linear(8, 3)).double().eval()


def pictures(count: int = 5) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    return torch.rand(count, 3, 8, 8, generator=draw, dtype=torch.float64), torch.arange(count) % 3


def hessian(net: nn.Module, image: Tensor, label: Tensor) -> Tensor:
    def loss(x: Tensor) -> Tensor:
        return cross_entropy(net(x.view(1, *image.shape)), label[None])

    return torch.autograd.functional.hessian(loss, image.flatten())


def test_finite_differences_agree_with_exact_products_along_the_same_directions() -> None:
    net, (images, labels) = smooth_net(), pictures()
    ours = input_curvature(net, images, labels, torch.Generator().manual_seed(3), directions=20, step=1e-2)
    draw = torch.Generator().manual_seed(3)
    directions = [torch.randn(images.shape, generator=draw, dtype=images.dtype) for _ in range(20)]
    for i in range(len(images)):
        matrix = hessian(net, images[i], labels[i])
        exact = torch.stack([(matrix @ e[i].flatten()).square().sum() for e in directions]).mean()
        assert float(ours[i]) == pytest.approx(float(exact), rel=0.05)


def test_many_directions_give_the_sum_of_squared_eigenvalues() -> None:
    net, (images, labels) = smooth_net(), pictures(1)
    ours = input_curvature(net, images, labels, torch.Generator().manual_seed(0), directions=600, step=1e-3)
    squares = torch.linalg.eigvalsh(hessian(net, images[0], labels[0])).square().sum()
    assert float(ours[0]) == pytest.approx(float(squares), rel=0.15)


def test_accuracy_of_the_flattest_pictures_equals_a_slow_loop() -> None:
    draw = torch.Generator().manual_seed(0)
    curvature = torch.rand(40, generator=draw)
    right = torch.rand(10, 40, generator=draw) > 0.3
    portions = torch.tensor([0.1, 0.25, 0.5, 1.0])
    ours = retained_accuracy(curvature, right, portions)
    for portion, value in zip(portions.tolist(), ours.tolist()):
        kept = sorted(range(40), key=lambda i: float(curvature[i]))[: round(portion * 40)]
        hits = [bool(right[run, i]) for run in range(10) for i in kept]
        assert value == pytest.approx(sum(hits) / len(hits))


def test_groups_by_times_right_and_their_correlation() -> None:
    curvature = torch.tensor([5.0, 7.0, 2.0, 1.0])
    right = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 1]]).bool()
    assert curvature_by_count(curvature, right) == [(0, 2, 6.0), (1, 1, 2.0), (2, 1, 1.0)]
    correlation = count_correlation(curvature, right)
    assert correlation is not None
    assert correlation < -0.9
    assert count_correlation(curvature, torch.ones(2, 4).bool()) is None
    assert lowest_share(torch.arange(10.0).flip(0)).tolist() == list(range(9))


def test_the_surface_has_the_picture_in_its_middle_and_rises_along_the_gradient() -> None:
    net, (images, labels) = smooth_net(), pictures()
    label = int(labels[2])
    surface = loss_surface(net, images[2], label, torch.Generator().manual_seed(0), reach=0.2, points=5)
    here = cross_entropy(net(images[2:3]), labels[2:3]).detach()
    assert float(surface.loss_SS[2, 2]) == pytest.approx(float(here))
    assert surface.offsets_S.tolist() == pytest.approx([-0.2, -0.1, 0.0, 0.1, 0.2])
    along, across = surface.loss_SS[:, 2], surface.loss_SS[2]
    assert bool((along.diff() > 0).all())
    assert float((across[4] - across[0]).abs()) < 0.2 * float(along[4] - along[0])
