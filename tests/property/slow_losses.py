"""The loss terms and geometry of robust_discriminative_noise, one class and one sample at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]


def distance(p: Vector, q: Vector) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(p, q)))


def dot(p: Vector, q: Vector) -> float:
    return sum(a * b for a, b in zip(p, q))


def members(labels: Sequence[int], c: int) -> list[int]:
    return [index for index, label in enumerate(labels) if label == c]


def present(labels: Sequence[int]) -> list[int]:
    return sorted(set(labels))


def centroid(features: Sequence[Vector], labels: Sequence[int], c: int) -> list[float]:
    own = [features[index] for index in members(labels, c)]
    return [sum(values) / len(own) for values in zip(*own)]


def compactness(
    features: Sequence[Vector], labels: Sequence[int], centroids: Sequence[Vector], delta_v: float
) -> float:
    total = 0.0
    for c in present(labels):
        own = members(labels, c)
        excess = [max(0.0, distance(centroids[c], features[index]) - delta_v) for index in own]
        total += sum(e**2 for e in excess) / len(own)
    return total / len(present(labels))


def boundary_distance(point: Vector, c: int, i: int, W: Sequence[Vector], b: Vector) -> float:
    """Eq. 10."""
    normal = [p - q for p, q in zip(W[c], W[i])]
    return abs(dot(normal, point) + b[c] - b[i]) / math.sqrt(dot(normal, normal))


def margin(
    centroids: Sequence[Vector], labels: Sequence[int], W: Sequence[Vector], b: Vector, delta_d: float
) -> float:
    """Eq. 9, with its sign and absolute value as printed."""
    total = 0.0
    for c in present(labels):
        logits = [dot(row, centroids[c]) + offset for row, offset in zip(W, b)]
        worst = 0.0
        for i in range(len(W)):
            if i == c:
                continue
            sign = (logits[i] > logits[c]) - (logits[i] < logits[c])
            worst = max(worst, delta_d + sign * boundary_distance(centroids[c], c, i, W, b))
        total += worst
    return total / len(present(labels))


def norm_penalty(centroids: Sequence[Vector], labels: Sequence[int]) -> float:
    norms = [math.sqrt(dot(centroids[c], centroids[c])) for c in present(labels)]
    return sum(norms) / len(norms)


def dispersion(features: Sequence[Vector], labels: Sequence[int], c: int) -> float:
    """Definition 3.1."""
    own = [features[index] for index in members(labels, c)]
    return max(distance(p, q) for p in own for q in own)


def class_margin(
    features: Sequence[Vector], labels: Sequence[int], c: int, W: Sequence[Vector], b: Vector
) -> float:
    """Definition 5.1."""
    own = [features[index] for index in members(labels, c)]
    return min(boundary_distance(q, c, i, W, b) for q in own for i in range(len(W)) if i != c)


def nearest_strangers(features: Sequence[Vector], labels: Sequence[int]) -> float:
    pairs = [(p, q) for p in range(len(labels)) for q in range(p) if labels[p] != labels[q]]
    return min(distance(features[p], features[q]) for p, q in pairs)
