"""Compact classes, wide margins, and noisy copies aligned with them (robust_discriminative_noise, 4)."""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from edge_road.nn import losses
from edge_road.nn.centroids import ClassCentroids
from edge_road.nn.gather import gather_with_gradient
from edge_road.nn.model import Output, RoadModel
from edge_road.nn.noise import add_gaussian_noise
from edge_road.recipe_method import DiscriminativeMethod
from edge_road.training.methods.base import Method, Step, forward_pair, step_of
from edge_road.training.methods.spider import Spheres

log = logging.getLogger(__name__)


class Discriminative(Method):
    def __init__(self, settings: DiscriminativeMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.settings = settings
        self.centroids = ClassCentroids(classes, features, settings.centroids, settings.momentum)
        self.spheres = Spheres(settings, classes) if settings.perturbation == "spider" else None
        _warn_of_small_margin(settings.delta_d, settings.delta_v)

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """Softmax on the clean images plus Eq. 13; SPIDER's copies also bring their own loss."""
        ours = self.settings
        copies_BCHW, targets_BC = self._copies(images_BCHW, labels_B, generator)
        (q_BD, logits_BC), noisy = self._outputs(model, images_BCHW, copies_BCHW)
        softmax = self.cross_entropy(logits_BC, labels_B)
        q_BD, labels_B = gather_with_gradient(q_BD), gather_with_gradient(labels_B)
        compact_CD, margin_CD = self.centroids(q_BD, labels_B)
        W, b = model.classifier.weight, model.classifier.bias
        terms = {
            "softmax": softmax,
            "compactness": ours.alpha * losses.compactness(q_BD, labels_B, compact_CD, ours.delta_v),
            "margin": ours.beta * losses.margin(margin_CD, labels_B, W, b, ours.delta_d),
            "norm_penalty": ours.gamma_reg * losses.norm_penalty(compact_CD, labels_B),
        }
        if noisy:
            noisy_BD = gather_with_gradient(noisy.features_BD)
            apart = losses.alignment(noisy_BD, labels_B, compact_CD, ours.delta_v)
            terms["alignment"] = ours.lambda_align * apart
        if noisy and targets_BC is not None:
            terms["spider"] = self.cross_entropy(noisy.logits_BC, targets_BC)
        return step_of(terms, logits_BC)

    def _copies(
        self, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> tuple[Tensor | None, Tensor | None]:
        """The perturbed images, unless nothing is learnt of them, and the labels that they teach, if any."""
        if self.spheres:
            return self.spheres.around(images_BCHW, labels_B, generator)
        if self.settings.lambda_align == 0:
            return None, None
        return add_gaussian_noise(images_BCHW, self.settings.sigma, generator), None

    def _outputs(
        self, model: RoadModel, images_BCHW: Tensor, copies_BCHW: Tensor | None
    ) -> tuple[Output, Output | None]:
        if copies_BCHW is None:
            return model(images_BCHW), None
        return forward_pair(model, images_BCHW, copies_BCHW, self.settings.passes)


def _warn_of_small_margin(delta_d: float, delta_v: float) -> None:
    if delta_d <= delta_v:
        log.warning(
            "delta_d (%g) is not above delta_v (%g): zero loss promises no class margin at all, "
            "which is delta_d - delta_v (Proposition 5.2.1)",
            delta_d,
            delta_v,
        )
    if delta_d <= 2 * delta_v:
        log.warning(
            "delta_d (%g) is not above 2 * delta_v (%g): two images of one class may lie farther apart "
            "than images of two classes (Proposition 5.2.2)",
            delta_d,
            2 * delta_v,
        )
