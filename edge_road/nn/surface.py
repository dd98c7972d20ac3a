"""The loss around one picture: along its gradient, and across (robust_discriminative_noise, Figure 11)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from edge_road.nn.attacks import Logits, losses_and_gradients


class Surface(NamedTuple):
    offsets_S: Tensor
    """distances from the picture, the same along both directions"""
    loss_SS: Tensor
    """[i, j]: the loss at offsets_S[i] along the gradient and offsets_S[j] across it"""


@torch.no_grad()
def loss_surface(
    logits_of: Logits,
    image_CHW: Tensor,
    label: int,
    generator: torch.Generator,
    reach: float,
    points: int = 21,
) -> Surface:
    """`reach` is the L2 distance of the outermost points; pixels are not clipped: the plane is flat."""
    along_V, across_V = _directions(logits_of, image_CHW, label, generator)
    offsets_S = torch.linspace(-reach, reach, points, dtype=image_CHW.dtype)
    rows = []
    for offset in offsets_S:
        moved_SV = image_CHW.flatten() + offset * along_V + offsets_S[:, None] * across_V
        logits_SC = logits_of(moved_SV.view(points, *image_CHW.shape))
        rows.append(cross_entropy(logits_SC, torch.full((points,), label), reduction="none"))
    return Surface(offsets_S, torch.stack(rows))


def _directions(
    logits_of: Logits, image_CHW: Tensor, label: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Unit vectors: the gradient, and a random one at right angles to it."""
    _, gradient_BCHW = losses_and_gradients(logits_of, image_CHW[None], torch.tensor([label]))
    along_V = _unit(gradient_BCHW.flatten())
    chance_V = torch.randn(along_V.shape, generator=generator, dtype=along_V.dtype)
    return along_V, _unit(chance_V - (chance_V @ along_V) * along_V)


def _unit(vector_V: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vector_V)
    return vector_V / length.clamp(min=torch.finfo(vector_V.dtype).tiny)
