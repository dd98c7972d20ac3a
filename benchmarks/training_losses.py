"""The loss terms alone, and the same sums as published code writes them: a loop over classes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.training_material import FEATURES, Work
from edge_road.nn import losses
from edge_road.nn.centroids import batch_centroids


def loss_of(classes: int, batch: int, terms: Callable[..., Tensor]) -> Work:
    """The loss of given features, forward and backward."""
    generator = torch.Generator().manual_seed(0)
    labels_B = torch.randint(0, classes, (batch,), generator=generator)
    q_BD, noisy_BD = (torch.randn(batch, FEATURES, generator=generator, requires_grad=True) for _ in range(2))
    W = torch.randn(classes, FEATURES, generator=generator, requires_grad=True)
    b = torch.zeros(classes, requires_grad=True)
    return lambda: torch.autograd.backward(terms(q_BD, noisy_BD, labels_B, W, b))


def all_at_once(q_BD: Tensor, noisy_BD: Tensor, labels_B: Tensor, W: Tensor, b: Tensor) -> Tensor:
    centroids_CD, _ = batch_centroids(q_BD, labels_B, len(W))
    return (
        losses.compactness(q_BD, labels_B, centroids_CD, 0.5)
        + losses.margin(centroids_CD, labels_B, W, b, 3.0)
        + losses.norm_penalty(centroids_CD, labels_B)
        + losses.alignment(noisy_BD, labels_B, centroids_CD, 0.5)
    )


def class_by_class(q_BD: Tensor, noisy_BD: Tensor, labels_B: Tensor, W: Tensor, b: Tensor) -> Tensor:
    totals = []
    for label in labels_B.unique().tolist():
        own = labels_B == label
        centroid_D = q_BD[own].mean(dim=0)
        far = ((centroid_D - q_BD[own]).norm(dim=1) - 0.5).clamp(min=0).square().mean()
        noisy = ((centroid_D - noisy_BD[own]).norm(dim=1) - 0.5).clamp(min=0).square().mean()
        logits_C, rivals = W @ centroid_D + b, torch.arange(len(W)) != label
        lacks = 3.0 + (logits_C[rivals] - logits_C[label]) / (W[label] - W[rivals]).norm(dim=1)
        totals.append(far + noisy + lacks.clamp(min=0).max() + centroid_D.norm())
    return torch.stack(totals).mean()
