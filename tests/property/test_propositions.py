"""Propositions 4.1, 5.1, 5.2 and 5.3 of robust_discriminative_noise hold for our code, where they apply."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
import slow_losses
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from edge_road.nn import losses
from edge_road.nn.backbone import Backbone
from edge_road.nn.centroids import ClassCentroids, batch_centroids
from edge_road.nn.model import RoadModel

CLASSES = 4
seeds = st.integers(0, 2**31)


def small_model(seed: int) -> RoadModel:
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Flatten(), nn.Linear(48, 12), nn.Tanh())
    backbone = Backbone("small", module, 12, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
    model = RoadModel(backbone, features=6, classes=CLASSES).double()
    nn.init.normal_(model.classifier.bias, std=0.1)
    return model


def images_and_labels(count: int = 20) -> tuple[Tensor, Tensor]:
    return torch.rand(count, 3, 4, 4, dtype=torch.float64), torch.arange(count) % CLASSES


def gradients_of_margin(model: RoadModel, centroids_CD: Tensor, labels: Tensor) -> dict[str, Tensor]:
    W, b = model.classifier.weight, model.classifier.bias
    model.zero_grad()
    losses.margin(centroids_CD, labels, W, b, delta_d=50.0).backward(retain_graph=True)
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@given(seeds, st.floats(0.05, 0.99))
@settings(max_examples=30, deadline=None)
def test_4_1_momentum_shrinks_the_margin_gradient_of_the_backbone_by_one_minus_gamma(
    seed: int, gamma: float
) -> None:
    model = small_model(seed)
    images, labels = images_and_labels()
    features = model(images).features_BD
    naive, _ = batch_centroids(features, labels, CLASSES)
    module = ClassCentroids(CLASSES, 6, "momentum", gamma).double()
    module(0.999 * features.detach(), labels)  # an old centroid near the new one: the same worst rival
    running, _ = module(features, labels)

    W, b = model.classifier.weight, model.classifier.bias
    rivals = [losses.signed_distances(m, W, b).argmax(dim=1).tolist() for m in (naive, running)]
    assume(rivals[0] == rivals[1])
    with_momentum = gradients_of_margin(model, running, labels)
    without = gradients_of_margin(model, naive, labels)
    backbone = [name for name in without if not name.startswith("classifier")]
    assert backbone
    for name in backbone:
        assert without[name].abs().max() > 0
        torch.testing.assert_close(with_momentum[name], (1 - gamma) * without[name], rtol=1e-7, atol=1e-12)


def test_4_1_does_not_hold_for_the_classifier_itself() -> None:
    model = small_model(0)
    images, labels = images_and_labels()
    features = model(images).features_BD
    naive, _ = batch_centroids(features, labels, CLASSES)
    module = ClassCentroids(CLASSES, 6, "momentum", 0.9).double()
    module(0.999 * features.detach(), labels)
    with_momentum = gradients_of_margin(model, module(features, labels).margin_CD, labels)
    without = gradients_of_margin(model, naive, labels)
    torch.testing.assert_close(
        with_momentum["classifier.bias"], without["classifier.bias"], rtol=1e-7, atol=1e-12
    )


def trained_to_zero(seed: int, delta_v: float, delta_d: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Free features and a classifier, descended until both losses are exactly zero."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(24) % CLASSES

    def parameter(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    q, W, b = parameter(24, 6), parameter(CLASSES, 6), parameter(CLASSES)
    descent = torch.optim.Adam([q, W, b], lr=0.05)
    for _ in range(3000):
        m, _ = batch_centroids(q, labels, CLASSES)
        total = losses.compactness(q, labels, m, delta_v) + losses.margin(m, labels, W, b, delta_d)
        if total == 0:
            return q.detach(), labels, W.detach(), b.detach()
        descent.zero_grad()
        total.backward()
        descent.step()
    raise AssertionError(f"the losses stay at {total.item()}")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("delta_v", "delta_d"), [(0.5, 3.0), (0.5, 1.001), (1.0, 6.0)])
def test_5_1_and_5_2_hold_once_training_has_brought_the_losses_to_zero(
    seed: int, delta_v: float, delta_d: float
) -> None:
    q, labels, W, b = (tensor.tolist() for tensor in trained_to_zero(seed, delta_v, delta_d))
    dispersions = [slow_losses.dispersion(q, labels, c) for c in range(CLASSES)]
    assert max(dispersions) <= 2 * delta_v + 1e-12
    assert all(
        slow_losses.class_margin(q, labels, c, W, b) >= delta_d - delta_v - 1e-12 for c in range(CLASSES)
    )
    assert max(dispersions) < slow_losses.nearest_strangers(q, labels)


def tight_clusters(delta_v: float, delta_d: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Two classes in the plane, spread along the line that joins them, centroids delta_d off the boundary."""
    q = torch.tensor(
        [[s * delta_d + t * delta_v, 0.0] for s in (-1, 1) for t in (-1, 1)], dtype=torch.float64
    )
    W = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    return q, torch.tensor([0, 0, 1, 1]), W, torch.zeros(2, dtype=torch.float64)


def test_5_1_and_5_2_are_reached_by_the_tightest_clusters() -> None:
    delta_v, delta_d = 0.5, 3.0
    q, labels, W, b = tight_clusters(delta_v, delta_d)
    m, _ = batch_centroids(q, labels, 2)
    assert losses.compactness(q, labels, m, delta_v) == 0
    assert losses.margin(m, labels, W, b, delta_d) == 0
    assert slow_losses.dispersion(q.tolist(), labels.tolist(), 0) == 2 * delta_v
    assert (
        slow_losses.class_margin(q.tolist(), labels.tolist(), 0, W.tolist(), b.tolist()) == delta_d - delta_v
    )


def test_5_2_needs_delta_d_above_twice_delta_v() -> None:
    q, labels, W, b = tight_clusters(delta_v=1.0, delta_d=1.5)
    m, _ = batch_centroids(q, labels, 2)
    assert losses.compactness(q, labels, m, 1.0) == 0
    assert losses.margin(m, labels, W, b, 1.5) == 0
    within = slow_losses.dispersion(q.tolist(), labels.tolist(), 0)
    assert within > slow_losses.nearest_strangers(q.tolist(), labels.tolist())


def scaled(model: RoadModel, nu: float) -> RoadModel:
    """T_nu of Appendix D: the feature layer and the classifier's bias times nu."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in (*other.feature_layer.parameters(), other.classifier.bias):
            parameter.mul_(nu)
    return other


@given(seeds, st.floats(0.1, 10.0))
@settings(max_examples=20, deadline=None)
def test_5_3_a_scaled_model_predicts_the_same_with_other_margins_and_dispersions(
    seed: int, nu: float
) -> None:
    model = small_model(seed)
    images, labels = images_and_labels()
    other = scaled(model, nu)
    before, after = model(images), other(images)
    assert after.logits_BC.argmax(dim=1).tolist() == before.logits_BC.argmax(dim=1).tolist()

    W = model.classifier.weight.tolist()
    for c in range(CLASSES):
        spreads = [
            slow_losses.dispersion(o.features_BD.tolist(), labels.tolist(), c) for o in (before, after)
        ]
        assert spreads[1] == pytest.approx(nu * spreads[0], rel=1e-9)
        margins = [
            slow_losses.class_margin(
                o.features_BD.tolist(), labels.tolist(), c, W, m.classifier.bias.tolist()
            )
            for o, m in ((before, model), (after, other))
        ]
        assert margins[1] == pytest.approx(nu * margins[0], rel=1e-7, abs=1e-12)


def test_5_3_the_two_losses_pull_along_that_line_in_opposite_directions() -> None:
    """Corollary 5.1: growing nu eases the margin and strains compactness."""
    model = small_model(1)
    images, _ = images_and_labels()
    labels = model(images).logits_BC.argmax(dim=1)  # every centroid on its own side
    margins, spreads = [], []
    for nu in (0.5, 1.0, 2.0, 4.0):
        other = scaled(model, nu)
        features = other(images).features_BD
        m, _ = batch_centroids(features, labels, CLASSES)
        margins.append(losses.margin(m, labels, other.classifier.weight, other.classifier.bias, 9.0).item())
        spreads.append(losses.compactness(features, labels, m, 0.01).item())
    assert all(later < earlier for earlier, later in pairwise(margins))
    assert all(later > earlier for earlier, later in pairwise(spreads))
