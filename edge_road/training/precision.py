"""In which floating-point format the network computes, and how small fp16 gradients survive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

Precision = Literal["auto", "float32", "bf16", "fp16"]
_TYPES = {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def autocast_type(precision: Precision, device: torch.device) -> torch.dtype | None:
    """None: everything in float32. A GPU without bf16 (before Ampere) takes fp16."""
    if precision != "auto":
        return _TYPES[precision]
    if device.type != "cuda":
        return None
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


class LossScale:
    """fp16 gradients below 6e-8 vanish, so the loss is scaled up; 1 for the other formats."""

    def __init__(self, dtype: torch.dtype | None, device: torch.device) -> None:
        self.scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)

    def tensors(self) -> dict[str, Tensor]:
        state = self.scaler.state_dict()
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in state.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        if tensors:
            state = {name: float(value) for name, value in tensors.items()}
            counts = {name: int(state[name]) for name in ("growth_interval", "_growth_tracker")}
            self.scaler.load_state_dict(state | counts)
