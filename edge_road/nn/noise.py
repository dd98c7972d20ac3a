"""Gaussian pixel noise, as the method adds it in training and evaluation measures it."""

from __future__ import annotations

import torch
from torch import Tensor


def add_gaussian_noise(images: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    """`sigma` in [0, 1] pixel units; clipped to [0, 1] as a camera saturates."""
    noise = torch.randn(images.shape, generator=generator, device=generator.device, dtype=images.dtype)
    return torch.add(images, noise.to(images.device), alpha=sigma).clamp_(0.0, 1.0)
