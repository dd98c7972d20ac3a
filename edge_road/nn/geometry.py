"""Where the features lie: dispersion, margins, share within delta_v, stability, and Theorem 6.1.

Numbers of equations and definitions are those of robust_discriminative_noise.
Shape suffixes: N pictures, C classes, D features, S samples of noise, X input values.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.linalg import vector_norm

from edge_road.nn.centroids import batch_centroids
from edge_road.nn.losses import signed_distances


def class_dispersion(features_ND: Tensor, labels_N: Tensor, classes: int) -> Tensor:
    """Definition 3.1: the largest distance of two features of a class; NaN for a class without pictures."""
    return torch.stack([_diameter(features_ND[labels_N == label]) for label in range(classes)])


def class_margins(
    features_ND: Tensor, labels_N: Tensor, weight_CD: Tensor, bias_C: Tensor
) -> tuple[Tensor, Tensor]:
    """Definition 5.1 with a sign: of each picture the distance to its nearest boundary, negative beyond it,
    and of each class the smallest (NaN without pictures)."""
    margin_N = sample_margins(features_ND, labels_N, weight_CD, bias_C)
    least = [margin_N[labels_N == label] for label in range(len(weight_CD))]
    nothing = margin_N.new_tensor(torch.nan)
    return margin_N, torch.stack([values.min() if len(values) else nothing for values in least])


def sample_margins(features_ND: Tensor, labels_N: Tensor, weight_CD: Tensor, bias_C: Tensor) -> Tensor:
    """min over i != c of (z_c - z_i) / ||W_c - W_i||"""
    logits_NC = features_ND @ weight_CD.T + bias_C
    gaps_NC = logits_NC.gather(1, labels_N[:, None]) - logits_NC
    lengths_NC = vector_norm(weight_CD[labels_N][:, None] - weight_CD[None], dim=2)
    bounded_NC = lengths_NC > 0
    distances_NC = gaps_NC / torch.where(bounded_NC, lengths_NC, 1.0)
    return distances_NC.masked_fill(~bounded_NC, torch.inf).amin(dim=1)


def centroid_margins(centroids_CD: Tensor, weight_CD: Tensor, bias_C: Tensor) -> Tensor:
    """Eq. 10 turned round: the distance of each centroid to its nearest boundary, which Eq. 9 wants
    to be delta_d or more."""
    return -signed_distances(centroids_CD, weight_CD, bias_C).amax(dim=1)


def share_within(features_ND: Tensor, labels_N: Tensor, centroids_CD: Tensor, delta_v: float) -> float:
    """The share of pictures whose feature lies within delta_v of its class's centroid (Eq. 8 is then 0)."""
    distances_N = vector_norm(features_ND - centroids_CD[labels_N], dim=1)
    return float((distances_N <= delta_v).to(torch.float64).mean())


def centroids_of(features_ND: Tensor, labels_N: Tensor, classes: int) -> Tensor:
    return batch_centroids(features_ND, labels_N, classes)[0]


def stability(features_ND: Tensor, noisy_features_SND: Tensor, delta: float) -> Tensor:
    """Definition 6.1: eta of each picture, the chance that noise moves its feature by `delta` or less."""
    moved_SN: Tensor = vector_norm(noisy_features_SND - features_ND, dim=2)
    return (moved_SN <= delta).to(torch.float64).mean(dim=0)


class CurvatureBounds(NamedTuple):
    """Theorem 6.1 at one picture."""

    squares: float
    """sum of squared eigenvalues of the input Hessian, the left side of Eq. 15"""
    upper: float
    """the right side of Eq. 15"""
    mixed: float
    """2 sum lambda^2 + (sum |lambda|)^2, the left side of Eq. 16"""
    lower: float
    """the right side of Eq. 16"""


def curvature_bounds(
    hessian_XX: Tensor,
    gradient_X: Tensor,
    loss: Tensor,
    noisy_loss_S: Tensor,
    inside_S: Tensor,
    weight_CD: Tensor,
    largest_logit: float,
    delta: float,
    sigma: float,
) -> CurvatureBounds:
    """Both sides of Eq. 15 and 16, from the exact Hessian and samples of the noise.

    Eq. 16 needs the losses of the features that leave the ball; without one its right side is that of
    eta = 1. The theorem assumes that the loss is quadratic (Eq. 14) and no logit exceeds `largest_logit`.
    """
    eigenvalues_X = torch.linalg.eigvalsh(hessian_XX)
    squares = eigenvalues_X.square().sum()
    eta = inside_S.to(loss.dtype).mean()
    widest = vector_norm(weight_CD, dim=1).max()
    upper = 8 / sigma**4 * (eta * widest**2 * delta**2 + 4 * (1 - eta) * largest_logit**2)
    out = noisy_loss_S[~inside_S].mean() - loss if bool((~inside_S).any()) else torch.zeros(())
    lower = 4 / sigma**4 * ((1 - eta) * out**2 - sigma**2 * gradient_X.square().sum())
    mixed = 2 * squares + eigenvalues_X.abs().sum() ** 2
    return CurvatureBounds(float(squares), float(upper), float(mixed), float(lower))


def _diameter(members_MD: Tensor) -> Tensor:
    if len(members_MD) == 0:
        return members_MD.new_tensor(torch.nan)
    return torch.cdist(members_MD, members_MD, compute_mode="donot_use_mm_for_euclid_dist").max()
