"""Optimizers by name, and the learning rate as a function of how far training has come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from edge_road.recipe import OptimizerSettings


def build_optimizer(
    parameters: Mapping[str, nn.Parameter], settings: OptimizerSettings
) -> torch.optim.Optimizer:
    groups = _groups(parameters, settings)
    rate = settings.learning_rate
    if settings.name == "sgd":
        nesterov = settings.momentum > 0
        return torch.optim.SGD(groups, lr=rate, momentum=settings.momentum, nesterov=nesterov)
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(groups, lr=rate, fused=True)  # one pass over the weights: three times faster on a CPU


def _groups(parameters: Mapping[str, nn.Parameter], settings: OptimizerSettings) -> list[dict[str, Any]]:
    """By what they have in common: new or of the backbone, and whether weight decay is for them."""
    kinds: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        if parameter.requires_grad:
            kinds.setdefault(("backbone." not in name, _is_exempt(parameter)), []).append(parameter)
    return [
        {
            "params": members,
            "weight_decay": 0.0 if exempt else settings.weight_decay,
            "rate_factor": settings.head_factor if new else 1.0,
        }
        for (new, exempt), members in kinds.items()
    ]


def _is_exempt(parameter: nn.Parameter) -> bool:
    """Biases and normalisation scales are vectors; pulling them to zero only hurts."""
    return parameter.ndim <= 1


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group["rate_factor"]


def learning_rate(settings: OptimizerSettings, epochs: int, progress: float) -> float:
    """`progress` counts epochs with their fraction: 2.5 is the middle of the third epoch."""
    if progress < settings.warmup_epochs:
        return settings.learning_rate * progress / settings.warmup_epochs
    return settings.learning_rate * _schedule(settings, epochs, progress)


def _schedule(settings: OptimizerSettings, epochs: int, progress: float) -> float:
    if settings.schedule == "step":
        return settings.factor ** _passed(settings.milestones, progress)
    if settings.schedule == "cosine":
        share = (progress - settings.warmup_epochs) / (epochs - settings.warmup_epochs)
        return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))
    return 1.0


def _passed(milestones: Iterable[int], progress: float) -> int:
    return sum(progress >= milestone for milestone in milestones)
