"""Noisy mixup: noisy feature mixup on the input alone (noisy_feature_mixup, figure 1)."""

from __future__ import annotations

from edge_road.recipe_method import NfmMethod, NoisyMixupMethod
from edge_road.training.methods.nfm import Nfm


class NoisyMixup(Nfm):
    def __init__(self, settings: NoisyMixupMethod, classes: int, features: int) -> None:
        shared = settings.model_dump(exclude={"name"})
        super().__init__(NfmMethod(**shared, layers="input"), classes, features)
