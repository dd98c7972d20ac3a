"""Noisy feature mixup: mix at a random layer, then noise (noisy_feature_mixup, Eq. 1 and 2)."""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from edge_road.nn.backbone import inner_stages
from edge_road.nn.mixing import Noise, PublishedNoise, changed_at, draw_mixture
from edge_road.nn.model import RoadModel
from edge_road.recipe_method import NfmMethod
from edge_road.training.methods.base import Method, Step, step_of

log = logging.getLogger(__name__)


class Nfm(Method):
    def __init__(self, settings: NfmMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        self.settings = settings
        kind = PublishedNoise if settings.published_noise else Noise
        self.noise = kind(settings.sigma_add, settings.sigma_mult)
        self._has_warned = False

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        """Steps 1 to 6 of section 3; the other minibatch is this one in another order."""
        layer = self._draw_layer(model.backbone, generator)
        mixture = draw_mixture(len(labels_B), self.settings.alpha, generator, images_BCHW.device)

        def mixed(values: Tensor) -> Tensor:
            return self.noise.on(mixture.of(values), generator)

        with changed_at(model.backbone, layer, mixed):
            # Not model(...): once compiled, it would not see the hook.
            logits_BC = model.forward(images_BCHW).logits_BC
        targets_BC = mixture.of(one_hot(labels_B, logits_BC.shape[1]).to(logits_BC.dtype))
        return step_of({"softmax": self.cross_entropy(logits_BC, targets_BC)}, logits_BC)

    def _draw_layer(self, backbone: nn.Module, generator: torch.Generator) -> nn.Module | None:
        """Of the eligible set, in which None stands for the input."""
        if self.settings.layers == "input":
            return None
        eligible = [None, *inner_stages(backbone)]
        if len(eligible) == 1 and not self._has_warned:
            self._has_warned = True
            log.warning(
                "the inner layers of a %s are not known: it is mixed at the input alone "
                "(MobileNetV3, EfficientNet and ResNet are mixed at every stage)",
                type(backbone).__name__,
            )
        return eligible[int(torch.randint(len(eligible), (1,), generator=generator, device=generator.device))]
