"""Channels of an activation brought to one middle and closer to one width, before they share one scale.

Behind ReLU or HardSwish nearly all values are positive, and some channels reach a hundred times further than
others: a symmetric scale for the whole tensor wastes half its levels on negative numbers and most of the
rest on quiet channels. So x' = gain * x + shift is quantised instead, and the next layer's weights and bias
undo it exactly: W x + b = (W / gain) x' + (b - W shift / gain). The gain is that of SmoothQuant (Xiao et al.
2022, Eq. 4, alpha = 1/2), the shift that of Outlier Suppression+ (Wei et al. 2023, Eq. 3). TensorRT
fuses it into the pointwise kernel that is there anyway: the number of kernels stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.frames import Floats

EXPONENT = 0.5
NARROWEST = 1e-3
"""of the widest channel: a channel that never moves must not be blown up"""
LARGEST_GAIN = 4096.0


@dataclass(frozen=True, eq=False)
class Balance:
    """By channel; both are float16 numbers, so that they are the same in both precisions."""

    gain_C: Floats
    shift_C: Floats
    keeps_zero: bool = False
    """there is no shift"""

    def apply(self, values_SC: Floats) -> Floats:
        return np.asarray(values_SC * self.gain_C + self.shift_C, np.float32)

    def undo(self, weight_OC: Floats, bias_O: Floats) -> tuple[Floats, Floats]:
        """The layer that takes balanced values and gives what it gave before."""
        balanced_OC = weight_OC.astype(np.float64) / self.gain_C
        return balanced_OC.astype(np.float32), (bias_O - balanced_OC @ self.shift_C).astype(np.float32)


def balance(samples_SC: Floats) -> Balance:
    low_C, high_C = samples_SC.min(axis=0).astype(np.float64), samples_SC.max(axis=0).astype(np.float64)
    centre_C, width_C = (low_C + high_C) / 2, (high_C - low_C) / 2
    gain_C = _gain(width_C, EXPONENT)
    return Balance(gain_C.astype(np.float32), (-centre_C * gain_C).astype(np.float16).astype(np.float32))


def widen(samples_SC: Floats) -> Balance:
    """For depthwise convolutions: each channel has its own weight scale, so all may reach equally far.

    They pad with zeros, so zero stays zero.
    """
    width_C = np.abs(samples_SC).max(axis=0).astype(np.float64)
    return Balance(_gain(width_C, 1.0).astype(np.float32), np.zeros_like(samples_SC[0]), keeps_zero=True)


def _gain(width_C: npt.NDArray[np.float64], exponent: float) -> npt.NDArray[np.float64]:
    widest = max(float(width_C.max()), 1.0 / LARGEST_GAIN)
    shares_C = np.maximum(width_C / widest, NARROWEST) ** exponent
    return np.minimum(1.0 / (widest * shares_C), LARGEST_GAIN).astype(np.float16).astype(np.float64)
