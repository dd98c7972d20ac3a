"""Geometry of features by hand and by loops; Theorem 6.1 where its assumptions hold."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.nn.geometry import (
    centroid_margins,
    centroids_of,
    class_dispersion,
    class_margins,
    curvature_bounds,
    share_within,
    stability,
)
from edge_road.nn.losses import compactness, margin


def random_features(count: int = 20) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(count, 4, generator=draw, dtype=torch.float64)
    weight = torch.randn(3, 4, generator=draw, dtype=torch.float64)
    return features, torch.arange(count) % 3, weight, torch.randn(3, generator=draw, dtype=torch.float64)


def test_dispersion_is_the_largest_distance_within_a_class() -> None:
    features, labels, _, _ = random_features()
    found = class_dispersion(features, labels, 4)
    for label in range(3):
        members = [f for f, own in zip(features, labels) if own == label]
        slow = max(float((a - b).norm()) for a in members for b in members)
        assert float(found[label]) == pytest.approx(slow)
    assert math.isnan(found[3])


def test_margins_are_distances_to_the_nearest_boundary() -> None:
    features, labels, weight, bias = random_features()
    of_sample, of_class = class_margins(features, labels, weight, bias)
    for i, label in enumerate(labels.tolist()):
        z = weight @ features[i] + bias
        slow = min(
            float((z[label] - z[j]) / (weight[label] - weight[j]).norm()) for j in range(3) if j != label
        )
        assert float(of_sample[i]) == pytest.approx(slow)
    assert of_class.tolist() == pytest.approx([float(of_sample[labels == c].min()) for c in range(3)])
    assert bool(((of_sample > 0) == ((features @ weight.T + bias).argmax(dim=1) == labels)).all())


def test_a_step_of_the_margin_along_the_normal_lands_on_the_boundary() -> None:
    weight, bias = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.zeros(2)
    of_sample, _ = class_margins(torch.tensor([[3.0, 9.0]]), torch.tensor([0]), weight, bias)
    assert float(of_sample[0]) == 3.0


def test_propositions_5_1_and_5_2_on_features_of_zero_loss() -> None:
    """Compactness and margin at zero: dispersion <= 2 delta_v, margin >= delta_d - delta_v."""
    delta_v, delta_d = 0.5, 3.0
    centres = 6.0 * torch.eye(3)
    draw = torch.Generator().manual_seed(2)
    directions = torch.nn.functional.normalize(torch.randn(60, 3, generator=draw), dim=1)
    labels = torch.arange(60) % 3
    features = centres[labels] + 0.49 * directions
    weight, bias = torch.eye(3), torch.zeros(3)
    assert float(compactness(features, labels, centres, delta_v)) == 0.0
    assert float(margin(centres, labels, weight, bias, delta_d)) == 0.0
    assert float(centroid_margins(centres, weight, bias).min()) >= delta_d
    assert share_within(features, labels, centres, delta_v) == 1.0
    assert float(class_dispersion(features, labels, 3).max()) <= 2 * delta_v
    assert float(class_margins(features, labels, weight, bias)[1].min()) >= delta_d - delta_v
    assert torch.allclose(centroids_of(features, labels, 3), centres, atol=0.2)


def test_stability_counts_the_noise_that_moves_a_feature_little() -> None:
    features = torch.zeros(2, 3)
    noisy = torch.zeros(4, 2, 3)
    noisy[:, 1, 0] = torch.tensor([0.1, 0.5, 2.0, 3.0])
    assert stability(features, noisy, 0.5).tolist() == [1.0, 0.5]


class TwoLayers(nn.Module):
    """Smooth features of a few inputs, so that the exact Hessian is small."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.features = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).double()
        self.classifier = nn.Linear(4, 3).double()
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.mul_(scale)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("delta", [0.02, 0.1, 0.5])
def test_both_bounds_of_theorem_6_1_hold_on_small_nets(scale: float, delta: float) -> None:
    """sigma is small, so that the quadratic of Eq. 14, which the theorem assumes, is close."""
    net, sigma = TwoLayers(scale), 0.1
    draw = torch.Generator().manual_seed(1)
    for number in range(4):
        x = torch.randn(6, generator=draw, dtype=torch.float64)
        label = torch.tensor([number % 3])

        def loss_of(x_X: Tensor, label: Tensor = label) -> Tensor:
            return cross_entropy(net.classifier(net.features(x_X))[None], label)

        noisy_SX = x + sigma * torch.randn(4000, 6, generator=draw, dtype=torch.float64)
        with torch.no_grad():
            features_SD = net.features(noisy_SX)
            inside_S = (features_SD - net.features(x)).norm(dim=1) <= delta
            logits_SC = net.classifier(features_SD)
            noisy_loss_S = cross_entropy(logits_SC, label.expand(4000), reduction="none")
        bounds = curvature_bounds(
            torch.autograd.functional.hessian(loss_of, x),
            torch.autograd.functional.jacobian(loss_of, x),
            loss_of(x).detach(),
            noisy_loss_S,
            inside_S,
            net.classifier.weight.detach(),
            float(logits_SC.abs().max()),
            delta,
            sigma,
        )
        assert bounds.squares <= bounds.upper
        assert bounds.mixed >= bounds.lower


def test_a_network_that_never_moves_its_features_has_no_curvature_to_bound() -> None:
    """eta = 1 for delta = 0: the upper bound is 0, and so is the Hessian."""
    bounds = curvature_bounds(
        torch.zeros(3, 3),
        torch.zeros(3),
        torch.tensor(0.7),
        torch.full((5,), 0.7),
        torch.ones(5).bool(),
        torch.ones(2, 2),
        largest_logit=4.0,
        delta=0.0,
        sigma=0.1,
    )
    assert bounds == (0.0, 0.0, 0.0, 0.0)
