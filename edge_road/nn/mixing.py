"""Mixing a batch with itself at any layer (noisy_feature_mixup, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from edge_road.nn.noise import normal_like

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Noise:
    """Levels of Eq. 2; both random factors are standard normal."""

    add: float = 0.0
    mult: float = 0.0

    def on(self, values: Tensor, generator: torch.Generator) -> Tensor:
        if self.mult:
            values = values * (1 + self.mult * self._factors(values, generator))
        if self.add:
            values = torch.add(values, normal_like(values, generator), alpha=self.add)
        return values

    def _factors(self, values: Tensor, generator: torch.Generator) -> Tensor:
        return normal_like(values, generator)


class PublishedNoise(Noise):
    """As the paper's code draws it: factors uniform in [-1, 1], each level scaled by Beta(2, 5)."""

    def on(self, values: Tensor, generator: torch.Generator) -> Tensor:
        add, mult = numpy_generator(generator).beta(2, 5, size=2)
        return _Uniform(self.add * add, self.mult * mult).on(values, generator)


class _Uniform(Noise):
    def _factors(self, values: Tensor, generator: torch.Generator) -> Tensor:
        factors = torch.rand(values.shape, generator=generator, device=generator.device, dtype=values.dtype)
        return 2 * factors.to(values.device) - 1


@dataclass(frozen=True, eq=False)
class Mixture:
    """M_lambda of Eq. 1: every sample with `share` of itself and the rest of its partner."""

    partner_B: Tensor
    share: float

    def of(self, values: Tensor) -> Tensor:
        return torch.lerp(values[self.partner_B], values, self.share)


def draw_mixture(size: int, alpha: float, generator: torch.Generator, device: torch.device) -> Mixture:
    """Partners by permutation, the share from Beta(alpha, alpha)."""
    partner_B = torch.randperm(size, generator=generator, device=generator.device)
    return Mixture(partner_B.to(device), float(numpy_generator(generator).beta(alpha, alpha)))


def numpy_generator(generator: torch.Generator) -> np.random.Generator:
    """Torch draws no Beta numbers from a generator; numpy does, seeded by it."""
    seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
    return np.random.default_rng(int(seed))


@contextmanager
def changed_at(backbone: nn.Module, layer: nn.Module | None, change: Change) -> Iterator[None]:
    """Within, the output of `layer`, or without one the backbone's input, passes through `change`."""
    if layer is None:
        hook = backbone.register_forward_pre_hook(lambda module, inputs: (change(inputs[0]),))
    else:
        hook = layer.register_forward_hook(lambda module, inputs, output: change(output))
    try:
        yield
    finally:
        hook.remove()
