"""Manifold mixup: noisy feature mixup without noise (noisy_feature_mixup, section 3)."""

from __future__ import annotations

from edge_road.recipe_method import ManifoldMixupMethod, NfmMethod
from edge_road.training.methods.nfm import Nfm


class ManifoldMixup(Nfm):
    def __init__(self, settings: ManifoldMixupMethod, classes: int, features: int) -> None:
        super().__init__(NfmMethod(alpha=settings.alpha, sigma_add=0.0, sigma_mult=0.0), classes, features)
