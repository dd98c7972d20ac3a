"""Batch normalisation over the batch of all processes, on a CPU as on a GPU.

torch's own works on GPUs alone and drops timm's activations; timm's converter keeps them. On a CPU
the layers stay what they are, with the same names in a state dict, and share their moments.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from timm.layers.norm_act import convert_sync_batchnorm
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.batchnorm import _BatchNorm

from edge_road.nn.separate_norm import batch_norms


def share_batch_norm(model: nn.Module) -> None:
    if next(model.parameters()).is_cuda:
        convert: Any = convert_sync_batchnorm
        convert(model)  # replaces layers below the model, which stays the same object
        return
    for norm in batch_norms(model):
        norm.forward = partial(_forward, norm, norm.forward)  # type: ignore[method-assign]


def _forward(norm: _BatchNorm, original: Any, images_BCHW: Tensor) -> Tensor:
    if not norm.training:
        evaluated: Tensor = original(images_BCHW)
        return evaluated
    mean_C, variance_C, count = _moments(images_BCHW)
    _remember(norm, mean_C.detach(), variance_C.detach() * count / (count - 1).clamp(min=1))
    scale_C = norm.weight * torch.rsqrt(variance_C + norm.eps)
    shift_C = norm.bias - mean_C * scale_C
    normal_BCHW = images_BCHW * scale_C[:, None, None] + shift_C[:, None, None]
    for part in ("drop", "act"):  # of timm's BatchNormAct2d
        normal_BCHW = getattr(norm, part, nn.Identity())(normal_BCHW)
    return normal_BCHW


def _moments(images_BCHW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, biased variance and count over all processes, in float64 against cancellation."""
    wide_BCHW = images_BCHW.double()
    sums_C, squares_C = wide_BCHW.sum(dim=(0, 2, 3)), wide_BCHW.square().sum(dim=(0, 2, 3))
    own = torch.tensor([images_BCHW[:, 0].numel()], dtype=torch.float64)
    total: Tensor = _SumOverProcesses.apply(torch.cat([sums_C, squares_C, own]))
    sums_C, squares_C, count = torch.split(total, [len(sums_C), len(sums_C), 1])
    mean_C = sums_C / count
    variance_C = squares_C / count - mean_C.square()
    return mean_C.to(images_BCHW.dtype), variance_C.to(images_BCHW.dtype), count.float()


@torch.no_grad()
def _remember(norm: _BatchNorm, mean_C: Tensor, variance_C: Tensor) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked += 1
    share = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean_C, share)
    norm.running_var.lerp_(variance_C, share)


class _SumOverProcesses(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, local: Tensor) -> Tensor:
        total = local.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        dist.all_reduce(total)
        return total
