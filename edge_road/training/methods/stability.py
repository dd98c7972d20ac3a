"""Cross-entropy on clean images and ||f(x) - f(x + e)|| (robust_discriminative_noise, 7.1)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.linalg import vector_norm

from edge_road.nn.model import RoadModel
from edge_road.nn.noise import add_gaussian_noise
from edge_road.recipe_method import StabilityMethod
from edge_road.training.methods.base import Method, Step, forward_pair, step_of


class Stability(Method):
    def __init__(self, settings: StabilityMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.settings = settings

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """Both versions carry a gradient: each may come to the other."""
        noisy_BCHW = add_gaussian_noise(images_BCHW, self.settings.sigma, generator)
        clean, noisy = forward_pair(model, images_BCHW, noisy_BCHW, self.settings.passes)
        apart_B = vector_norm(clean.features_BD - noisy.features_BD, dim=1)
        terms = {
            "softmax": self.cross_entropy(clean.logits_BC, labels_B),
            "stability": self.settings.weight * apart_B.mean(),
        }
        return step_of(terms, clean.logits_BC)
