"""Class centroids of the clean features: of the batch, running with momentum, or some of each (4.4)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from edge_road.nn.losses import membership

Strategy = Literal["naive", "momentum", "partial"]


class Centroids(NamedTuple):
    """The centroids that pull features together, and those that the margin pushes."""

    compact_CD: Tensor
    margin_CD: Tensor


class ClassCentroids(nn.Module):
    """Advances once per training batch; what it has learnt is in its state dict."""

    running_CD: Tensor
    seen_C: Tensor

    def __init__(self, classes: int, features: int, strategy: Strategy, momentum: float) -> None:
        super().__init__()
        self.strategy = strategy
        self.momentum = momentum
        self.register_buffer("running_CD", torch.zeros(classes, features))
        self.register_buffer("seen_C", torch.zeros(classes, dtype=torch.bool))

    def forward(self, features_BD: Tensor, labels_B: Tensor) -> Centroids:
        """Rows of classes that are not in the batch carry no gradient and mean nothing to the losses."""
        naive_CD, present_C = batch_centroids(features_BD, labels_B, len(self.seen_C))
        momentum_CD = self._blend(naive_CD, present_C)
        if self.training:
            self._remember(momentum_CD.detach(), present_C)
        return {
            "naive": Centroids(naive_CD, naive_CD),
            "momentum": Centroids(momentum_CD, momentum_CD),
            "partial": Centroids(momentum_CD, naive_CD),
        }[self.strategy]

    def _blend(self, naive_CD: Tensor, present_C: Tensor) -> Tensor:
        """g * old + (1 - g) * batch, where the first batch of a class has no old."""
        kept_C1 = self.momentum * self.seen_C.to(naive_CD.dtype)[:, None]
        blended_CD = kept_C1 * self.running_CD + (1 - kept_C1) * naive_CD
        return torch.where(present_C[:, None], blended_CD, self.running_CD)

    @torch.no_grad()
    def _remember(self, momentum_CD: Tensor, present_C: Tensor) -> None:
        # One bad batch must not spoil the centroids for good.
        sound_C = present_C & momentum_CD.isfinite().all(dim=1)
        self.running_CD.copy_(torch.where(sound_C[:, None], momentum_CD, self.running_CD))
        self.seen_C.logical_or_(sound_C)


def batch_centroids(features_BD: Tensor, labels_B: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """The mean feature of each class, and which classes are there (rows of the others are zero)."""
    members_CB = membership(labels_B, classes, features_BD.dtype)
    counts_C = members_CB.sum(dim=1)
    return members_CB @ features_BD / counts_C.clamp(min=1)[:, None], counts_C > 0
