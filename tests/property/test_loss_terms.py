"""The vectorised loss terms are the printed equations: a slow loop over classes agrees on any batch."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import slow_losses
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from edge_road.nn import losses
from edge_road.nn.centroids import ClassCentroids, batch_centroids

CLOSE = {"rtol": 0.0, "atol": 1e-10}


class Batch(NamedTuple):
    features: Tensor
    noisy: Tensor
    labels: Tensor
    centroids: Tensor
    W: Tensor
    b: Tensor


def random_batch(labels: list[int], classes: int, width: int, scale: float, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return scale * torch.randn(*shape, generator=generator, dtype=torch.float64)

    features = draw(len(labels), width)
    noisy = features + draw(len(labels), width)
    return Batch(
        features, noisy, torch.tensor(labels), draw(classes, width), draw(classes, width), draw(classes)
    )


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    classes = draw(st.integers(2, 9))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=24))
    scale = draw(st.sampled_from([0.1, 1.0, 5.0]))
    return random_batch(labels, classes, draw(st.integers(1, 12)), scale, draw(st.integers(0, 2**31)))


def assert_terms_equal_the_slow_ones(batch: Batch, delta_v: float = 0.5, delta_d: float = 3.0) -> None:
    features, noisy, labels, centroids, W, b = (tensor.tolist() for tensor in batch)
    pairs = [
        (
            losses.compactness(batch.features, batch.labels, batch.centroids, delta_v),
            slow_losses.compactness(features, labels, centroids, delta_v),
        ),
        (
            losses.alignment(batch.noisy, batch.labels, batch.centroids, delta_v),
            slow_losses.compactness(noisy, labels, centroids, delta_v),
        ),
        (
            losses.margin(batch.centroids, batch.labels, batch.W, batch.b, delta_d),
            slow_losses.margin(centroids, labels, W, b, delta_d),
        ),
        (
            losses.norm_penalty(batch.centroids, batch.labels),
            slow_losses.norm_penalty(centroids, labels),
        ),
    ]
    for fast, slow in pairs:
        torch.testing.assert_close(fast, torch.tensor(slow, dtype=torch.float64), **CLOSE)


@given(batches(), st.floats(0.01, 3.0), st.floats(0.01, 10.0))
@settings(max_examples=150, deadline=None)
def test_every_term_equals_the_slow_loop_on_any_batch(batch: Batch, delta_v: float, delta_d: float) -> None:
    assert_terms_equal_the_slow_ones(batch, delta_v, delta_d)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, 0, 2, 2, 2, 0], 3),
        ([0, 0, 0, 0, 1, 2, 2], 3),
        ([1, 1, 1, 1], 3),
        ([2], 3),
        ([0, 1], 2),
        (list(range(27)) * 3, 27),
        ([26, 3, 3, 14], 27),
    ],
    ids=["a class absent", "one member", "one class only", "batch of one", "two classes", "27", "4 of 27"],
)
def test_every_term_equals_the_slow_loop_in_the_corner_cases(labels: list[int], classes: int) -> None:
    assert_terms_equal_the_slow_ones(random_batch(labels, classes, 128, 1.0, seed=7))


def test_centroids_all_on_the_wrong_side_pay_delta_d_and_their_distance() -> None:
    batch = random_batch([0, 1, 2, 0], 3, 6, 1.0, seed=3)
    wrong = batch._replace(centroids=-4.0 * batch.W, b=torch.zeros(3, dtype=torch.float64))
    signed = losses.signed_distances(wrong.centroids, wrong.W, wrong.b)
    assert (signed.amax(dim=1) > 0).all()
    assert losses.margin(wrong.centroids, wrong.labels, wrong.W, wrong.b, 3.0) > 3.0
    assert_terms_equal_the_slow_ones(wrong)


@given(batches())
@settings(max_examples=60, deadline=None)
def test_batch_centroids_equal_the_slow_means(batch: Batch) -> None:
    centroids, present = batch_centroids(batch.features, batch.labels, len(batch.W))
    assert present.nonzero().flatten().tolist() == slow_losses.present(batch.labels.tolist())
    for c in slow_losses.present(batch.labels.tolist()):
        slow = slow_losses.centroid(batch.features.tolist(), batch.labels.tolist(), c)
        torch.testing.assert_close(centroids[c], torch.tensor(slow, dtype=torch.float64), **CLOSE)


@given(st.lists(batches(), min_size=1, max_size=5), st.floats(0.0, 0.99))
@settings(max_examples=60, deadline=None)
def test_running_centroids_equal_the_recurrence_written_out(stream: list[Batch], momentum: float) -> None:
    module = ClassCentroids(9, 4, "momentum", momentum).double()
    slow: dict[int, list[float]] = {}
    for batch in stream:
        features = batch.features.repeat(1, 4)[:, :4]
        compact, _ = module(features, batch.labels)
        for c in slow_losses.present(batch.labels.tolist()):
            mean = slow_losses.centroid(features.tolist(), batch.labels.tolist(), c)
            old = slow.get(c, mean)  # the first batch of a class sets its centroid
            slow[c] = [momentum * o + (1 - momentum) * m for o, m in zip(old, mean)]
            torch.testing.assert_close(compact[c], torch.tensor(slow[c], dtype=torch.float64), **CLOSE)
    assert module.seen_C.nonzero().flatten().tolist() == sorted(slow)


@given(batches())
@settings(max_examples=30, deadline=None)
def test_terms_pass_gradcheck_away_from_their_kinks(batch: Batch) -> None:
    delta_v, delta_d = 0.3, 2.0
    distances = (batch.features - batch.centroids[batch.labels]).norm(dim=1)
    signed = losses.signed_distances(batch.centroids, batch.W, batch.b)
    worst = signed.topk(min(2, signed.shape[1] - 1), dim=1).values
    near_kink = (
        ((distances - delta_v).abs() < 1e-3).any()
        or (distances < 1e-3).any()
        or ((worst[:, 0] + delta_d).abs() < 1e-3).any()
        or (worst.shape[1] == 2 and ((worst[:, 0] - worst[:, 1]) < 1e-3).any())
        or ((batch.W[None] - batch.W[:, None]).norm(dim=2) + torch.eye(len(batch.W)) < 1e-1).any()
        or (batch.centroids.norm(dim=1) < 1e-3).any()
    )
    assume(not near_kink)
    features, centroids, W, b = (
        tensor.clone().requires_grad_() for tensor in (batch.features, batch.centroids, batch.W, batch.b)
    )
    labels = batch.labels
    assert torch.autograd.gradcheck(
        lambda q, m: losses.compactness(q, labels, m, delta_v), (features, centroids)
    )
    assert torch.autograd.gradcheck(
        lambda m, w, o: losses.margin(m, labels, w, o, delta_d), (centroids, W, b)
    )
    assert torch.autograd.gradcheck(lambda m: losses.norm_penalty(m, labels), (centroids,))
