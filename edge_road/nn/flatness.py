"""Flatness: the loss after a random step of given length in the space of the weights.

Monte Carlo after Cha et al. (2021), as in spider_label_smoothing, 3.3 and E.1.3. A step of length
gamma means little by itself, as networks differ in the size of their weights; radii here are shares
of the length of all weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

RADII = (0.0, 0.002, 0.005, 0.01, 0.02)
SAMPLES = 5


@torch.no_grad()
def flatness(
    model: nn.Module,
    mean_loss: Callable[[], float],
    generator: torch.Generator,
    radii: Sequence[float] = RADII,
    samples: int = SAMPLES,
) -> list[tuple[float, float]]:
    """(radius, mean loss over the samples); `mean_loss` asks the model as it then stands."""
    length = float(torch.linalg.vector_norm(_flat(model)))
    curve = []
    for radius in radii:
        losses = []
        for _ in range(samples if radius else 1):
            with stepped(model, radius * length, generator):
                losses.append(mean_loss())
        curve.append((radius, sum(losses) / len(losses)))
    return curve


@contextmanager
def stepped(model: nn.Module, distance: float, generator: torch.Generator) -> Iterator[None]:
    """The weights, moved by `distance` in a direction that is uniform on the sphere; then put back."""
    weights = list(model.parameters())
    kept = [weight.detach().clone() for weight in weights]
    steps = [torch.randn(w.shape, generator=generator, dtype=w.dtype) for w in weights]
    length = torch.sqrt(torch.stack([step.square().sum() for step in steps]).sum())
    try:
        with torch.no_grad():
            for weight, step in zip(weights, steps):
                weight.add_(step * (distance / length))
        yield
    finally:
        with torch.no_grad():
            for weight, before in zip(weights, kept):
                weight.copy_(before)


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])
