"""Cross-entropy on clean images (Eq. 3): the method that all others are compared with."""

from __future__ import annotations

import torch
from torch import Tensor

from edge_road.nn.model import RoadModel
from edge_road.training.methods.base import Method, Step, step_of


class Softmax(Method):
    def forward(
        self, model: RoadModel, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator
    ) -> Step:
        logits_BC = model(images_BCHW).logits_BC
        return step_of({"softmax": self.cross_entropy(logits_BC, labels_B)}, logits_BC)
