"""A moving average of the weights, which validation and the finished model use in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Its first steps average evenly, so that the random beginning is soon forgotten."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._model = model
        self._decay = decay
        self._parameters = dict(model.named_parameters())
        self._average = {name: p.detach().clone() for name, p in self._parameters.items()}
        self._steps = 0

    @torch.no_grad()
    def update(self) -> None:
        self._steps += 1
        decay = min(self._decay, self._steps / (9 + self._steps))
        torch._foreach_lerp_(list(self._average.values()), list(self._parameters.values()), 1 - decay)

    @contextmanager
    def worn(self) -> Iterator[None]:
        """The model has the average weights here; weights and batch-norm statistics come back after."""
        kept = {name: tensor.clone() for name, tensor in self._model.state_dict().items()}
        self._load(self._average)
        try:
            yield
        finally:
            self._load(kept)

    @torch.no_grad()
    def _load(self, tensors: Mapping[str, Tensor]) -> None:
        """In place, so that the optimizer keeps its hold of the weights."""
        self._model.load_state_dict(tensors, strict=False)

    def tensors(self) -> dict[str, Tensor]:
        return {**self._average, ":steps": torch.tensor(self._steps)}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self._steps = int(tensors[":steps"])
        for name, average in self._average.items():
            average.copy_(tensors[name])
