"""Cross-entropy with softened labels (spider, 4.3: the rest is shared by the other classes)."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.errors import ConfigError
from edge_road.nn.losses import soft_labels
from edge_road.nn.model import RoadModel
from edge_road.recipe_method import LabelSmoothingMethod
from edge_road.training.methods.base import Method, Step, step_of


class LabelSmoothing(Method):
    def __init__(self, settings: LabelSmoothingMethod, classes: int, features: int) -> None:
        super().__init__(settings, classes, features)
        _refuse_teaching_others(settings.smoothing, classes)
        self.confidence = 1 - settings.smoothing

    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        logits_BC = model(images_BCHW).logits_BC
        confidence_B = torch.full_like(logits_BC[:, 0], self.confidence)
        targets_BC = soft_labels(labels_B, confidence_B, logits_BC.shape[1])
        return step_of({"softmax": self.cross_entropy(logits_BC, targets_BC)}, logits_BC)


def _refuse_teaching_others(smoothing: float, classes: int) -> None:
    if smoothing >= 1 - 1 / classes:
        raise ConfigError(
            "the own class would get no more of a label than the others",
            where="method.smoothing",
            got=smoothing,
            expected=f"below {1 - 1 / classes:.4g} = 1 - 1/{classes} classes",
        )
