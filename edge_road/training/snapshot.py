"""Everything in memory that decides how training goes on, as named tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from edge_road.training.checkpoint import Checkpoint, joined


class Stateful(Protocol):
    def tensors(self) -> dict[str, Tensor]: ...

    def restore(self, tensors: Mapping[str, Tensor]) -> None: ...


class Snapshot:
    """Takes and restores the state of what it was built with."""

    def __init__(
        self,
        model: nn.Module,
        method: nn.Module,
        optimizer: torch.optim.Optimizer,
        generator: torch.Generator,
        **others: Stateful,
    ) -> None:
        self._model = model
        self._method = method
        self._optimizer = optimizer
        self._generator = generator
        self._others = others

    def take(self) -> dict[str, Tensor]:
        return joined(
            model=self._model.state_dict(),
            method=self._method.state_dict(),
            optimizer=self._optimizer_tensors(),
            random=self._random_states(),
            **{name: other.tensors() for name, other in self._others.items()},
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        self._model.load_state_dict(checkpoint.part("model"))
        self._method.load_state_dict(checkpoint.part("method"))
        self._restore_optimizer(checkpoint.part("optimizer"))
        for name, other in self._others.items():
            other.restore(checkpoint.part(name))
        random = checkpoint.part("random")
        torch.set_rng_state(random["torch"])
        self._generator.set_state(random["method"])
        if "cuda" in random and torch.cuda.is_available():
            torch.cuda.set_rng_state(random["cuda"])

    def _random_states(self) -> dict[str, Tensor]:
        states = {"torch": torch.get_rng_state(), "method": self._generator.get_state()}
        return states | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})

    def _parameters(self) -> dict[str, nn.Parameter]:
        return trained_parameters(self._model, self._method)

    def _optimizer_tensors(self) -> dict[str, Tensor]:
        state = self._optimizer.state
        named = ((name, state.get(parameter, {})) for name, parameter in self._parameters().items())
        return {
            f"{name}:{key}": value
            for name, values in named
            for key, value in values.items()
            if isinstance(value, Tensor)
        }

    def _restore_optimizer(self, tensors: dict[str, Tensor]) -> None:
        parameters = self._parameters()
        self._optimizer.state.clear()
        for joined_name, value in tensors.items():
            name, _, key = joined_name.rpartition(":")
            self._optimizer.state[parameters[name]][key] = _laid_out_like(parameters[name], value)


def trained_parameters(model: nn.Module, method: nn.Module) -> dict[str, nn.Parameter]:
    modules: dict[str, Any] = {"model": model, "method": method}
    return {f"{part}.{name}": p for part, module in modules.items() for name, p in module.named_parameters()}


def _laid_out_like(parameter: nn.Parameter, value: Tensor) -> Tensor:
    """Files hold plain contiguous tensors; another memory layout could round differently."""
    if value.shape != parameter.shape:
        return value.to(parameter.device, copy=True)  # Adam's step count
    return torch.empty_like(parameter, requires_grad=False).copy_(value)
