"""Class centroids: how they start, move, survive a checkpoint and are shared between the terms."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load, save

from edge_road.nn.centroids import ClassCentroids, Strategy


def module(strategy: Strategy = "partial", momentum: float = 0.9) -> ClassCentroids:
    return ClassCentroids(classes=3, features=2, strategy=strategy, momentum=momentum)


ONES = torch.ones(2, 2)
ZEROS = torch.tensor([0, 0])


def test_the_first_batch_of_a_class_sets_its_centroid() -> None:
    centroids = module()
    centroids(ONES, ZEROS)
    centroids(4 * ONES, torch.tensor([2, 2]))
    assert centroids.running_CD.tolist() == [[1.0, 1.0], [0.0, 0.0], [4.0, 4.0]]
    assert centroids.seen_C.tolist() == [True, False, True]


def test_later_batches_move_it_by_one_minus_momentum() -> None:
    centroids = module(momentum=0.75)
    centroids(ONES, ZEROS)
    compact, _ = centroids(5 * ONES, ZEROS)
    assert compact[0].tolist() == [2.0, 2.0]
    assert centroids.running_CD[0].tolist() == [2.0, 2.0]


def test_an_absent_class_keeps_its_centroid() -> None:
    centroids = module()
    centroids(ONES, ZEROS)
    compact, _ = centroids(7 * ONES, torch.tensor([1, 1]))
    assert compact[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("strategy", "compact", "margin"),
    [("naive", 5.0, 5.0), ("momentum", 2.0, 2.0), ("partial", 2.0, 5.0)],
)
def test_partial_is_momentum_for_compactness_and_naive_for_the_margin(
    strategy: Strategy, compact: float, margin: float
) -> None:
    centroids = module(strategy, momentum=0.75)
    centroids(ONES, ZEROS)
    both = centroids(5 * ONES, ZEROS)
    assert both.compact_CD[0].tolist() == [compact, compact]
    assert both.margin_CD[0].tolist() == [margin, margin]


def test_without_momentum_the_running_centroid_is_the_naive_one() -> None:
    centroids = module("momentum", momentum=0.0)
    centroids(ONES, ZEROS)
    assert centroids(5 * ONES, ZEROS).compact_CD[0].tolist() == [5.0, 5.0]


def test_the_old_centroid_has_no_gradient_and_the_batch_its_share() -> None:
    centroids = module("momentum", momentum=0.75)
    centroids(ONES.clone().requires_grad_(), ZEROS)
    assert not centroids.running_CD.requires_grad
    features = (5 * ONES).requires_grad_()
    centroids(features, ZEROS).compact_CD[0].sum().backward()
    assert features.grad is not None
    assert features.grad.tolist() == [[0.125, 0.125]] * 2  # (1 - 0.75) / 2 samples


def test_two_batches_may_pass_before_one_backward() -> None:
    centroids = module("momentum")
    features = ONES.clone().requires_grad_()
    first = centroids(features, ZEROS).compact_CD.square().sum()
    second = centroids(3 * features, ZEROS).compact_CD.square().sum()
    (first + second).backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()


def test_eval_mode_looks_and_does_not_touch() -> None:
    centroids = module(momentum=0.75)
    centroids(ONES, ZEROS)
    centroids.eval()
    assert centroids(5 * ONES, ZEROS).compact_CD[0].tolist() == [2.0, 2.0]
    assert centroids.running_CD[0].tolist() == [1.0, 1.0]


def test_a_batch_with_nan_does_not_spoil_what_was_learnt() -> None:
    centroids = module()
    centroids(ONES, ZEROS)
    compact, _ = centroids(torch.nan * ONES, ZEROS)
    assert compact.isnan().any()  # the loss of that batch still shows it
    assert centroids.running_CD[0].tolist() == [1.0, 1.0]


def test_the_state_dict_carries_the_centroids_through_safetensors() -> None:
    before = module()
    before(ONES, ZEROS)
    after = module()
    after.load_state_dict(load(save(before.state_dict())))
    features, labels = torch.rand(4, 2), torch.tensor([0, 1, 1, 2])
    assert torch.equal(before(features, labels).compact_CD, after(features, labels).compact_CD)
    assert torch.equal(before.seen_C, after.seen_C)
    assert set(before.state_dict()) == {"running_CD", "seen_C"}
