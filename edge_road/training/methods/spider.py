"""Images on spheres of random radius, with labels the softer the larger it is (spider, Algorithm 2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from edge_road.errors import ConfigError
from edge_road.nn.losses import soft_labels
from edge_road.nn.model import RoadModel
from edge_road.nn.noise import add_sphere_noise, uniform
from edge_road.recipe_method import SphereSettings, SpiderMethod
from edge_road.training.methods.base import Method, Step, step_of

PAPER_VALUES = 32 * 32 * 3


class Spheres:
    """Perturbed copies with the labels that are due to them."""

    def __init__(self, settings: SphereSettings, classes: int) -> None:
        if settings.xi >= 1 - 1 / classes:
            raise ConfigError(
                "the confidence at radius tau would not be below one",
                where="method.xi",
                got=settings.xi,
                expected=f"below {1 - 1 / classes:.4g} = 1 - 1/{classes} classes",
            )
        self.settings, self.classes = settings, classes

    def around(
        self, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        tau = self.settings.tau * math.sqrt(images_BCHW[0].numel() / PAPER_VALUES)
        radius_B = tau * uniform(len(images_BCHW), generator, like=images_BCHW)
        confidence_B = confidence(radius_B, tau, self.settings.xi, self.classes)
        copies_BCHW = add_sphere_noise(images_BCHW, radius_B, generator)
        return copies_BCHW, soft_labels(labels_B, confidence_B, self.classes)


def confidence(radius_B: Tensor, tau: float, xi: float, classes: int) -> Tensor:
    """1 up to tau / 4, then falling exponentially to 1 / classes + xi at tau."""
    fall = math.log(classes / (1 + xi * classes)) / (0.75 * tau)
    return torch.exp(-fall * (radius_B - tau / 4)).clamp(max=1.0)


class Spider(Method):
    def __init__(self, settings: SpiderMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.spheres = Spheres(settings, classes)

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        copies_BCHW, targets_BC = self.spheres.around(images_BCHW, labels_B, generator)
        logits_BC = model(copies_BCHW).logits_BC
        return step_of({"spider": self.cross_entropy(logits_BC, targets_BC)}, logits_BC)
