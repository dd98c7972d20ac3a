"""Layers whose size at birth is chosen."""

from __future__ import annotations

import math

from torch import nn


def scaled_linear(inputs: int, outputs: int, *, gain: float) -> nn.Linear:
    """Its outputs are `gain` times the size of its inputs, whatever their number."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=gain / math.sqrt(inputs))
    nn.init.zeros_(layer.bias)
    return layer
