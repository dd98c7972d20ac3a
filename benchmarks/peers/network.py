"""The network that all trainers get: timm backbone, feature layer and classifier, as edge_road names them.

Needs timm and torch only, so that peers can train it in an environment of their own.
"""

from __future__ import annotations

from typing import Any

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn


class Network(nn.Module):
    """RGB pictures in [0, 1] to logits; the state dict is that of a RoadModel."""

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: str, classes: int, features: int = 128, weights: str | None = None) -> None:
        super().__init__()
        trunk: Any = timm.create_model(backbone, num_classes=0)
        published = trunk.pretrained_cfg
        self.backbone = trunk
        self.register_buffer("mean", torch.tensor(published["mean"]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(published["std"]).view(3, 1, 1))
        self.feature_layer = nn.Linear(trunk.head_hidden_size, features)
        self.classifier = nn.Linear(features, classes)
        if weights:
            known = self.backbone.state_dict()
            self.backbone.load_state_dict({k: v for k, v in load_file(weights).items() if k in known})

    def forward(self, images_BCHW: Tensor) -> Tensor:
        pooled_BP = self.backbone((images_BCHW - self.mean) / self.std)
        logits_BC: Tensor = self.classifier(self.feature_layer(torch.relu(pooled_BP)))
        return logits_BC


def tensors_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone().contiguous() for name, value in module.state_dict().items()}
