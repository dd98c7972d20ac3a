"""Batch-norm statistics for a model at rest.

Those gathered while training lag behind weights that change quickly. Re-estimated on clean
pictures they serve clean pictures best; re-estimated on all that the method shows the model, noisy
copies included, they serve both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from edge_road.nn.separate_norm import batch_norms
from edge_road.training.batches import Batch


@torch.no_grad()
def settle_batch_norm(model: nn.Module, batches: Iterable[Batch], show: Callable[[Batch], object]) -> None:
    """Replace running statistics by plain averages over what `show` lets the model see of `batches`.

    Batches must be shuffled: the variance between batches is not counted. Leaves the model in eval mode.
    """
    norms = batch_norms(model)
    momenta = [norm.momentum for norm in norms]
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average
        norm.train()
    with torch.compiler.set_stance("force_eager"):  # a cumulative average would break a compiled graph
        for batch in batches:
            show(batch)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.eval()
