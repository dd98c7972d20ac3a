"""Boundary thickness: how long the way from sure to undecided is (Yang et al., 2020).

As in spider_label_smoothing, 3.2.1 and E.1.2: towards an adversarial picture x_j of an L2 PGD-20 attack
with eps 5 and steps of 1 on 32x32x3, the share of 128 points between both with
alpha < p_i - p_j < beta, times the length of the way.
"""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.attacks import Budget, Logits, pgd

ATTACK = Budget("L2", 5.0, 20, step_of_eps=4.0)
POINTS = 128
ALPHA, BETA = 0.0, 0.75


@torch.no_grad()
def segment_thickness(
    logits_of: Logits,
    start_CHW: Tensor,
    end_CHW: Tensor,
    alpha: float = ALPHA,
    beta: float = BETA,
    points: int = POINTS,
) -> float:
    """Between two pictures that are said to be of different classes; i and j are what is said of them."""
    t_P = torch.linspace(0, 1, points, dtype=start_CHW.dtype)[:, None, None, None]
    probabilities_PC = logits_of((1 - t_P) * start_CHW + t_P * end_CHW).softmax(dim=1)
    i, j = int(probabilities_PC[0].argmax()), int(probabilities_PC[-1].argmax())
    gap_P = probabilities_PC[:, i] - probabilities_PC[:, j]
    inside = ((gap_P > alpha) & (gap_P < beta)).to(torch.float64).mean()
    return float(inside * torch.linalg.vector_norm((end_CHW - start_CHW).flatten()))


def boundary_thickness(
    logits_of: Logits,
    images_BCHW: Tensor,
    labels_B: Tensor,
    attack: Budget | None = None,
    alpha: float = ALPHA,
    beta: float = BETA,
) -> list[float]:
    """Of every picture that is right and whose attack succeeds: the others have no boundary in reach."""
    budget = attack or ATTACK.scaled_to(images_BCHW[0].numel())
    attacked_BCHW = pgd(logits_of, images_BCHW, labels_B, budget)
    with torch.no_grad():
        right_B = logits_of(images_BCHW).argmax(dim=1) == labels_B
        crossed_B = right_B & (logits_of(attacked_BCHW).argmax(dim=1) != labels_B)
    chosen = crossed_B.nonzero().flatten().tolist()
    return [segment_thickness(logits_of, images_BCHW[i], attacked_BCHW[i], alpha, beta) for i in chosen]
