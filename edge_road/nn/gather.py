"""One batch spread over processes, seen whole by each of them; alone, everything stays as it is.

A loss that is not a plain mean over samples (class centroids, the worst rival) must see all of
them. Every process computes it from the gathered tensors; gradients flow back to the process that
a sample came from, once for each process that used it. Averaged over the processes, as
DistributedDataParallel does, that is the gradient of one process with the whole batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def is_distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def gather_with_gradient(local: Tensor) -> Tensor:
    """The tensors of all processes along the first axis, in the order of their ranks.

    Their lengths may differ (a picture that cannot be read is left out by one process alone).
    """
    if not is_distributed():
        return local
    gathered: Tensor = _Gather.apply(local)
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, local: Tensor) -> Tensor:
        lengths = _lengths(local)
        context.start = sum(lengths[: dist.get_rank()])
        context.length = len(local)
        rows = max(lengths)
        padded = local.new_zeros((rows, *local.shape[1:]))
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in lengths]
        dist.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, lengths)])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        summed = gradients[0].contiguous().clone()
        dist.all_reduce(summed)
        return summed[context.start : context.start + context.length]


def _lengths(local: Tensor) -> list[int]:
    own = torch.tensor([len(local)], device=local.device)
    every = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(every, own)
    return [int(length) for length in every]
