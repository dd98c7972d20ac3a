"""The loss terms of robust_discriminative_noise, section 4, each a function of tensors.

Every term is a mean over the classes present in the batch (C_B), so that a rare class weighs as
much as a common one. No loop over classes and no copy to the host: a step never waits for them.
Shape suffixes: B batch, C classes, D features.
"""

from __future__ import annotations

import torch
from torch import Tensor, relu
from torch.linalg import vector_norm


def compactness(features_BD: Tensor, labels_B: Tensor, centroids_CD: Tensor, delta_v: float) -> Tensor:
    """Eq. 8: squared distance to the own centroid, as far as it exceeds `delta_v`."""
    distances_B = vector_norm(features_BD - centroids_CD[labels_B], dim=1)
    members_CB = membership(labels_B, len(centroids_CD), features_BD.dtype)
    means_C = members_CB @ relu(distances_B - delta_v).square() / members_CB.sum(dim=1).clamp(min=1)
    return _mean_of_present(means_C, labels_B)


def alignment(noisy_features_BD: Tensor, labels_B: Tensor, centroids_CD: Tensor, delta_v: float) -> Tensor:
    """Eq. 12: compactness of the noisy copies around the centroids of the clean images."""
    return compactness(noisy_features_BD, labels_B, centroids_CD, delta_v)


def margin(
    centroids_CD: Tensor, labels_B: Tensor, weight_CD: Tensor, bias_C: Tensor, delta_d: float
) -> Tensor:
    """Eq. 9: how much each centroid lacks of `delta_d` to the boundary of its worst rival."""
    signed_CC = signed_distances(centroids_CD, weight_CD, bias_C)
    return _mean_of_present(relu(delta_d + signed_CC.amax(dim=1)), labels_B)


def norm_penalty(centroids_CD: Tensor, labels_B: Tensor) -> Tensor:
    """Eq. 11: mean length of the centroids."""
    return _mean_of_present(vector_norm(centroids_CD, dim=1), labels_B)


def signed_distances(centroids_CD: Tensor, weight_CD: Tensor, bias_C: Tensor) -> Tensor:
    """[c, i]: distance of centroid c to the boundary with class i, negative on its own side (Eq. 10).

    Equal weight rows have no boundary between them, least of all a class and itself: minus infinity.
    """
    normals_CCD = weight_CD[None, :] - weight_CD[:, None]
    lengths_CC = vector_norm(normals_CCD, dim=2)
    bounded_CC = lengths_CC > 0
    gaps_CC = (normals_CCD * centroids_CD[:, None]).sum(dim=2) + bias_C[None, :] - bias_C[:, None]
    signed_CC = gaps_CC / torch.where(bounded_CC, lengths_CC, 1.0)
    return signed_CC.masked_fill(~bounded_CC, -torch.inf)


def soft_labels(labels_B: Tensor, confidence_B: Tensor, classes: int) -> Tensor:
    """The own class gets `confidence_B`, the others share the rest equally (spider, Algorithm 1)."""
    others_BC = ((1 - confidence_B) / (classes - 1))[:, None].expand(-1, classes)
    return others_BC.scatter(1, labels_B[:, None], confidence_B[:, None])


def membership(labels_B: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """[c, b]: 1 where sample b is of class c, else 0."""
    return (torch.arange(classes, device=labels_B.device)[:, None] == labels_B).to(dtype)


def _mean_of_present(values_C: Tensor, labels_B: Tensor) -> Tensor:
    present_C = membership(labels_B, len(values_C), torch.bool).any(dim=1)
    return torch.where(present_C, values_C, 0.0).sum() / present_C.sum().clamp(min=1)
