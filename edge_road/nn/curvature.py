"""Curvature of the loss over the input, and what it has to do with noise.

robust_discriminative_noise, Eq. 21 and Figures 8 to 10: the sum of the squared eigenvalues of the
input Hessian is E ||H e||^2 over e ~ N(0, I), and H e is a difference of two gradients.
Shape suffixes: B batch, K directions, N pictures, R runs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.attacks import Logits, losses_and_gradients

DIRECTIONS = 20
STEP = 1e-2


def input_curvature(
    logits_of: Logits,
    images_BCHW: Tensor,
    labels_B: Tensor,
    generator: torch.Generator,
    directions: int = DIRECTIONS,
    step: float = STEP,
) -> Tensor:
    """Eq. 21 for each picture: 1/K sum ||grad(x + t e) - grad(x)||^2 / t^2."""
    _, here_BCHW = losses_and_gradients(logits_of, images_BCHW, labels_B)
    total_B = torch.zeros(len(images_BCHW), dtype=images_BCHW.dtype)
    for _ in range(directions):
        e_BCHW = torch.randn(images_BCHW.shape, generator=generator, dtype=images_BCHW.dtype)
        _, there_BCHW = losses_and_gradients(logits_of, images_BCHW + step * e_BCHW, labels_B)
        total_B += (there_BCHW - here_BCHW).flatten(1).square().sum(dim=1)
    return total_B / (directions * step**2)


def retained_accuracy(curvature_N: Tensor, right_RN: Tensor, portions: Tensor) -> Tensor:
    """Figure 8: noisy accuracy of the p pictures of least curvature, for each portion p in (0, 1]."""
    order_N = curvature_N.argsort(stable=True)
    share_N = right_RN.to(torch.float64).mean(dim=0)[order_N]
    counts_P = (portions * len(order_N)).round().clamp(min=1).long()
    return share_N.cumsum(dim=0)[counts_P - 1] / counts_P


def curvature_by_count(curvature_N: Tensor, right_RN: Tensor) -> list[tuple[int, int, float]]:
    """Figure 9: (times right of R, pictures, their mean curvature), for the groups that exist."""
    count_N = right_RN.long().sum(dim=0)
    groups = []
    for count in range(len(right_RN) + 1):
        members = curvature_N[count_N == count]
        if len(members):
            groups.append((count, len(members), float(members.mean())))
    return groups


def count_correlation(curvature_N: Tensor, right_RN: Tensor) -> float | None:
    """Pearson's, of the groups' counts and mean curvatures, as the paper prints it; none below 2 groups."""
    groups = curvature_by_count(curvature_N, right_RN)
    if len(groups) < 2:
        return None
    pairs = torch.tensor([(count, mean) for count, _, mean in groups], dtype=torch.float64)
    value = float(torch.corrcoef(pairs.T)[0, 1])
    return value if value == value else None  # equal means have no correlation


def lowest_share(curvature_N: Tensor, share: float = 0.9) -> Tensor:
    """Figure 10: the curvatures without the largest tenth, in rising order."""
    kept = max(1, round(share * len(curvature_N)))
    return curvature_N.sort().values[:kept]
