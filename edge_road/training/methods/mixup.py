"""Mixup: noisy feature mixup without noise, on the input alone (noisy_feature_mixup, section 3)."""

from __future__ import annotations

from edge_road.recipe_method import MixupMethod, NfmMethod
from edge_road.training.methods.nfm import Nfm


class Mixup(Nfm):
    def __init__(self, settings: MixupMethod, classes: int, features: int) -> None:
        same = NfmMethod(alpha=settings.alpha, sigma_add=0.0, sigma_mult=0.0, layers="input")
        super().__init__(same, classes, features)
