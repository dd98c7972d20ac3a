"""Cross-entropy on noisy images only (robust_discriminative_noise, 7.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.model import RoadModel
from edge_road.nn.noise import add_gaussian_noise
from edge_road.recipe_method import NoisyMethod
from edge_road.training.methods.base import Method, Step, step_of


class Noisy(Method):
    def __init__(self, settings: NoisyMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.sigma = settings.sigma

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        logits_BC = model(add_gaussian_noise(images_BCHW, self.sigma, generator)).logits_BC
        return step_of({"softmax": self.cross_entropy(logits_BC, labels_B)}, logits_BC)
