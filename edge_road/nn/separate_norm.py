"""Noisy passes that leave the running batch-norm statistics of clean pictures alone.

In training each pass is normalised by its own batch, so clean and noisy pictures never mix; only
the running averages, which a finished model uses, would (an auxiliary batch norm as in AdvProp, Xie
et al. 2020, of which the clean half is kept).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

_MARK = "keeps_noisy_apart"


def batch_norms(model: nn.Module) -> list[_BatchNorm]:
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]


def keep_noisy_apart(model: nn.Module) -> None:
    """From now on `noisy_pass` matters to this model."""
    setattr(model, _MARK, True)


@contextmanager
def noisy_pass(model: nn.Module) -> Iterator[None]:
    """What goes through the model here is a noisy copy of what goes through it elsewhere."""
    norms = batch_norms(model) if getattr(model, _MARK, False) else []
    kept = [(norm, norm.momentum) for norm in norms if norm.training]
    for norm, _ in kept:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in kept:
            norm.momentum = momentum
