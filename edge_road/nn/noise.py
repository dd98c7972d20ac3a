"""Noise on images as the methods add it in training; pixels stay in [0, 1] as a camera saturates."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.linalg import vector_norm

_PART = 2**18
_MOST_ROUNDS = 40
_CLOSE_ENOUGH = 1e-3


def normal_like(values: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers, drawn where the generator lives."""
    # Images are channels last in training.
    layout = torch.channels_last if values.dim() == 4 else torch.contiguous_format
    noise = torch.empty(values.shape, dtype=values.dtype, device=generator.device, memory_format=layout)
    in_memory_N = noise.as_strided((noise.numel(),), (1,))
    if generator.device.type == "cpu" and noise.numel() > _PART:
        _fill_side_by_side(in_memory_N, generator)
    else:
        in_memory_N.normal_(generator=generator)
    return noise.to(values.device)


def _fill_side_by_side(noise_N: Tensor, generator: torch.Generator) -> None:
    """torch draws in one thread. Parts of a fixed size, so that the numbers are the same on any machine."""

    def fill(part: Tensor, seed: int) -> None:
        part.normal_(generator=torch.Generator().manual_seed(seed))

    parts = torch.split(noise_N, _PART)
    seeds = torch.randint(2**62, (len(parts),), generator=generator).tolist()
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(fill, parts, seeds))


def uniform(count: int, generator: torch.Generator, like: Tensor) -> Tensor:
    return torch.rand(count, generator=generator, device=generator.device, dtype=like.dtype).to(like.device)


def add_gaussian_noise(images: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    """`sigma` in [0, 1] pixel units."""
    return torch.add(images, normal_like(images, generator), alpha=sigma).clamp_(0.0, 1.0)


def add_sphere_noise(images_BCHW: Tensor, radius_B: Tensor, generator: torch.Generator) -> Tensor:
    """A random point at distance `radius_B` from each image (spider, Algorithm 2)."""
    return at_distance(images_BCHW, normal_like(images_BCHW, generator), radius_B)


@torch.no_grad()
def at_distance(images_BCHW: Tensor, direction_BCHW: Tensor, radius_B: Tensor) -> Tensor:
    """clip(x + eta * direction) with the eta that puts it at `radius_B` from x, or into the last corner.

    Clipping-aware rescaling (Rauber and Bethge 2020; spider, appendix E.1.1). The distance is concave in
    eta and zero at zero, so eta * radius / distance(eta) rises to the solution and never beyond it.
    """
    room_BCHW = torch.where(direction_BCHW > 0, 1 - images_BCHW, images_BCHW)
    pace_BCHW = direction_BCHW.abs()
    eta_B = radius_B / vector_norm(pace_BCHW, dim=(1, 2, 3))
    for _ in range(_MOST_ROUNDS):
        reached_B = vector_norm(torch.minimum(pace_BCHW * _each(eta_B), room_BCHW), dim=(1, 2, 3))
        if bool((reached_B >= radius_B * (1 - _CLOSE_ENOUGH)).all()):
            break
        eta_B = eta_B * (radius_B / reached_B).nan_to_num(1.0, posinf=1.0)
    return torch.addcmul(images_BCHW, direction_BCHW, _each(eta_B)).clamp_(0.0, 1.0)


def _each(values_B: Tensor) -> Tensor:
    return values_B.view(-1, 1, 1, 1)
