"""Clean and noisy pictures in every layer of a model: where they lie, and how well classes lie apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from edge_road.datasets.index import Labels
from edge_road.evaluation.perturbations import CLEAN, perturb
from edge_road.frames import Floats
from edge_road.nn.layer_features import layer_features
from edge_road.nn.predictor import load_model
from edge_road.training.lab import pixels
from edge_road.training.pool.members import Member
from edge_road.training.pool.result import LayersRow

NOISY = "gaussian_40"
MOST_POINTS = 500
"""of one map, clean and noisy together"""


@dataclass(frozen=True, eq=False)
class LayerSample:
    """Layer -> condition -> one vector for each picture."""

    labels_N: Labels
    layers: Mapping[str, Mapping[str, Floats]]


def layer_sample(member: Member, seed: int) -> LayerSample:
    assert member.run is not None
    pictures = member.test_pictures(MOST_POINTS // 2, seed)
    model = load_model(member.run)
    clean = layer_features(model, pixels(pictures.images_NHWC))
    noisy = layer_features(model, pixels(perturb(pictures.images_NHWC, NOISY, seed, run=0)))
    return LayerSample(pictures.labels_N, {name: {CLEAN: clean[name], NOISY: noisy[name]} for name in clean})


def layers_row(name: str, sample: LayerSample) -> LayersRow:
    clean, noisy = (
        {layer: _silhouette(found[condition], sample.labels_N) for layer, found in sample.layers.items()}
        for condition in (CLEAN, NOISY)
    )
    return LayersRow(name=name, clean=clean, noisy=noisy)


def _silhouette(features_ND: Floats, labels_N: Labels) -> float | None:
    """Rousseeuw (1987): 1 where classes lie far apart, 0 where they overlap."""
    from sklearn.metrics import silhouette_score

    if not 1 < len(np.unique(labels_N)) < len(labels_N):
        return None
    return round(float(silhouette_score(features_ND, labels_N)), 4)


def embedded(features: Mapping[str, Floats]) -> dict[str, Floats]:
    """t-SNE (van der Maaten and Hinton, 2008), all conditions in one map, so that places can be compared."""
    from sklearn.manifold import TSNE

    together = np.concatenate(list(features.values()))
    perplexity = min(30.0, (len(together) - 1) / 3)
    points = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(together)
    return dict(zip(features, np.split(points, len(features))))
