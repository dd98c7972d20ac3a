"""Where norms and boundaries vanish, the loss terms stay finite and still teach."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn import losses


def leaf(values: list[list[float]] | list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def all_finite(*tensors: Tensor) -> bool:
    return all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in tensors)


def test_a_feature_exactly_on_its_centroid_has_no_gradient_and_no_nan() -> None:
    features, centroids = leaf([[1.0, 2.0]]), leaf([[1.0, 2.0], [0.0, 0.0]])
    losses.compactness(features, torch.tensor([0]), centroids, delta_v=0.5).backward()
    assert features.grad is not None
    assert features.grad.tolist() == [[0.0, 0.0]]
    assert all_finite(centroids)


def test_a_centroid_at_the_origin_has_no_nan_in_its_norm_gradient() -> None:
    centroids = leaf([[0.0, 0.0], [3.0, 4.0]])
    penalty = losses.norm_penalty(centroids, torch.tensor([0, 1]))
    penalty.backward()
    assert penalty.item() == 2.5
    assert all_finite(centroids)


def test_classes_with_equal_weights_have_no_boundary_and_leave_the_others_theirs() -> None:
    centroids = leaf([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    W, b = leaf([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), leaf([0.0, 5.0, 0.0])
    loss = losses.margin(centroids[::2], torch.tensor([0]), W[::2], b[::2], 3.0)
    with_a_twin = losses.margin(centroids, torch.tensor([0]), W, b, 3.0)
    assert with_a_twin.item() == loss.item() == 2.0
    with_a_twin.backward()
    assert all_finite(centroids, W, b)


def test_a_classifier_of_zeros_costs_no_margin_and_gives_no_nan() -> None:
    centroids, W, b = leaf([[1.0], [2.0]]), leaf([[0.0], [0.0]]), leaf([0.0, 0.0])
    loss = losses.margin(centroids, torch.tensor([0, 1]), W, b, 3.0)
    loss.backward()
    assert loss.item() == 0.0
    assert all_finite(centroids, W, b)


def test_the_margin_looks_at_the_worst_rival_only() -> None:
    W, b = leaf([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), leaf([0.0, 0.0, 0.0])
    centroids = leaf([[-1.0, -2.0], [0.0, 0.0], [0.0, 0.0]])  # 1 from the boundary with 1, 2 from that with 2
    loss = losses.margin(centroids, torch.tensor([0]), W, b, 3.0)
    loss.backward()
    assert loss.item() == 2.0
    assert centroids.grad is not None
    assert centroids.grad[0].tolist() == [1.0, 0.0]


def test_a_rare_class_weighs_as_much_as_a_common_one() -> None:
    centroids = torch.zeros(2, 1)
    features = torch.tensor([[2.0]] * 9 + [[3.0]])
    labels = torch.tensor([0] * 9 + [1])
    assert losses.compactness(features, labels, centroids, delta_v=1.0).item() == (1 + 4) / 2


def test_an_empty_batch_costs_nothing_and_propagates() -> None:
    features, centroids = leaf([[1.0, 2.0]]), leaf([[1.0, 2.0], [0.0, 0.0]])
    none = torch.zeros(0, dtype=torch.long)
    total = losses.compactness(features[:0], none, centroids, 0.5) + losses.norm_penalty(centroids, none)
    total.backward()
    assert total.item() == 0.0
    assert all_finite(features, centroids)


def test_absent_classes_get_no_gradient() -> None:
    centroids = leaf([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    W, b = leaf([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), leaf([0.0, 0.0, 0.0])
    labels = torch.tensor([0, 1])
    (losses.margin(centroids, labels, W, b, 3.0) + losses.norm_penalty(centroids, labels)).backward()
    assert centroids.grad is not None
    assert centroids.grad[2].tolist() == [0.0, 0.0]
    assert centroids.grad[:2].abs().sum() > 0
