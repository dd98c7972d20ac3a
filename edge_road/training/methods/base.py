"""What every training method is: a module that turns a batch into a loss with named terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.config import StrictModel
from edge_road.nn.gather import gather_with_gradient
from edge_road.nn.model import Output, RoadModel
from edge_road.nn.separate_norm import noisy_pass


class Step(NamedTuple):
    """The loss of one batch; only `total` carries a gradient."""

    total: Tensor
    terms: dict[str, Tensor]
    """each with its weight, so that they add up to the total"""
    logits_BC: Tensor


class Method(nn.Module, ABC):
    """Its state dict holds what it learns beside the model, so checkpoints must carry it."""

    class_weights_C: Tensor | None

    def __init__(self, settings: StrictModel, classes: int, features: int) -> None:
        super().__init__()
        # Of the training pictures, not learnt: no part of the state.
        self.register_buffer("class_weights_C", None, persistent=False)

    @abstractmethod
    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """`images_BCHW` are augmented RGB in [0, 1]; all that is random comes from `generator`."""

    def cross_entropy(self, logits_BC: Tensor, targets: Tensor) -> Tensor:
        """`targets` are labels, or probabilities as the logits; weighted, they need the whole batch."""
        if self.class_weights_C is not None:
            logits_BC, targets = gather_with_gradient(logits_BC), gather_with_gradient(targets)
        return cross_entropy(logits_BC, targets, weight=self.class_weights_C)


def step_of(terms: dict[str, Tensor], logits_BC: Tensor) -> Step:
    """Add up the terms; what is only looked at later keeps no graph alive."""
    total = torch.stack(list(terms.values())).sum()
    return Step(total, {name: term.detach() for name, term in terms.items()}, logits_BC.detach())


def forward_pair(
    model: RoadModel, first_BCHW: Tensor, second_BCHW: Tensor, passes: Literal["two", "joint"]
) -> tuple[Output, Output]:
    """Two versions of a batch; batch normalisation sees them apart in `two` and mixed in `joint`."""
    if passes == "two":
        first = model(first_BCHW)
        with noisy_pass(model):
            return first, model(second_BCHW)
    features, logits = model(torch.cat([first_BCHW, second_BCHW]))
    size = len(first_BCHW)
    return Output(features[:size], logits[:size]), Output(features[size:], logits[size:])
