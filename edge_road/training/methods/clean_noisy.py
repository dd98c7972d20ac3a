"""Cross-entropy on clean images and on their noisy copies (robust_discriminative_noise, 7.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.model import RoadModel
from edge_road.nn.noise import add_gaussian_noise
from edge_road.recipe_method import CleanNoisyMethod
from edge_road.training.methods.base import Method, Step, forward_pair, step_of


class CleanNoisy(Method):
    def __init__(self, settings: CleanNoisyMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.settings = settings

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """A mean over all images: each half counts half."""
        noisy_BCHW = add_gaussian_noise(images_BCHW, self.settings.sigma, generator)
        clean, noisy = forward_pair(model, images_BCHW, noisy_BCHW, self.settings.passes)
        terms = {
            "clean": self.cross_entropy(clean.logits_BC, labels_B) / 2,
            "noisy": self.cross_entropy(noisy.logits_BC, labels_B) / 2,
        }
        return step_of(terms, clean.logits_BC)
