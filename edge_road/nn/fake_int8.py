"""One INT8 layer as training sees it: rounded forwards, smooth backwards.

The input's step is learnt together with the weights (LSQ, Esser et al. 2020, Eq. 1-3; in the logarithm, as
in TQT, Jain et al. 2020, so that an update is a share of it). The weights keep the steps that they start with
and are counted in them, biases in what one step of a weight does to a full input: Adam moves every number by
about its learning rate, which then means the same in every layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

LEVELS = 127
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LayerValues:
    """What an INT8 layer is made of, before and after training."""

    input_name: str
    """layers of one name share one quantised input"""
    input_scale: float
    weight: Floats
    scales_O: Floats
    output_axis: int
    bias_O: Floats | None
    """none: there is no place for one"""
    gain_C: Floats | None = None
    shift_C: Floats | None = None
    """what is done to the inputs before they are quantised"""


class FakeInt8(nn.Module):
    scales: Tensor
    start_bias: Tensor | None
    bias_unit: Tensor
    gain: Tensor | None
    shift: Tensor | None

    def __init__(self, values: LayerValues, log_scale: nn.Parameter, channels_first: bool) -> None:
        super().__init__()
        self.values = values
        self.log_scale = log_scale
        shape = [-1 if axis == values.output_axis else 1 for axis in range(values.weight.ndim)]
        scales_O = torch.tensor(values.scales_O)
        self.register_buffer("scales", scales_O.reshape(shape))
        self.steps = nn.Parameter(torch.tensor(values.weight) / self.scales)
        self.register_buffer("start_bias", _tensor(values.bias_O))
        self.register_buffer("bias_unit", LEVELS * values.input_scale * scales_O)
        self.bias_steps = nn.Parameter(torch.zeros_like(scales_O))
        by_channel = (1, -1, 1, 1) if channels_first else (1, -1)
        for name, value in (("gain", values.gain_C), ("shift", values.shift_C)):
            self.register_buffer(name, None if value is None else torch.tensor(value).reshape(by_channel))

    @property
    def bias(self) -> Tensor | None:
        return None if self.start_bias is None else self.start_bias + self.bias_unit * self.bias_steps

    def quantized_input(self, inputs: Tensor) -> Tensor:
        if self.gain is not None:
            inputs = inputs * self.gain
        if self.shift is not None:
            inputs = inputs + self.shift
        return rounded(inputs, self.log_scale.exp())

    def quantized_weight(self) -> Tensor:
        return rounded_steps(self.steps) * self.scales

    @torch.no_grad()
    def learnt(self) -> LayerValues:
        return replace(
            self.values,
            input_scale=float(self.log_scale.exp()),
            weight=(rounded_steps(self.steps) * self.scales).numpy(),
            bias_O=None if self.bias is None else self.bias.numpy(),
        )


def rounded(values: Tensor, scale: Tensor) -> Tensor:
    """Q and DQ; the gradient passes through the rounding, and stops where values are clipped."""
    return rounded_steps(values / scale) * scale


def rounded_steps(steps: Tensor) -> Tensor:
    clipped = steps.clamp(-LEVELS, LEVELS)
    return clipped + (clipped.round() - clipped).detach()


def _tensor(values: Floats | None) -> Tensor | None:
    return None if values is None else torch.tensor(values)
