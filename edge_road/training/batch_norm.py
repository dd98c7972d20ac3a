"""Batch-norm statistics of clean pictures.

Methods that also train on noisy copies leave running averages of both kinds in the model, and
rapidly changing weights leave averages of older ones. At rest neither fits what a camera sees.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from edge_road.training.batches import Batch


@torch.no_grad()
def settle_batch_norm(model: nn.Module, batches: Iterable[Batch]) -> None:
    """Replace the running statistics by plain averages over `batches` (shuffled, or they are biased)."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average
        norm.train()
    for batch in batches:
        model(batch.images_BCHW)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
