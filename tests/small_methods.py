"""A small model that remembers its images, and any method by name."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from edge_road.nn.backbone import Backbone
from edge_road.nn.model import Output, RoadModel
from edge_road.recipe_method import MethodSettings
from edge_road.training.methods import build_method

LABELS = torch.arange(12) % 3


class Recorder(RoadModel):
    def __init__(self) -> None:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        super().__init__(Backbone("small", module, 8, (0.5,) * 3, (0.1,) * 3), features=6, classes=3)
        nn.init.normal_(self.feature_layer.weight)  # spread out, so that every term counts
        self.seen: list[Tensor] = []

    def forward(self, images_BCHW: Tensor) -> Output:
        self.seen.append(images_BCHW)
        return super().forward(images_BCHW)


def method_of(name: str, classes: int = 3, **settings: object) -> Any:
    parsed: Any = TypeAdapter(MethodSettings).validate_python({"name": name, **settings})
    return build_method(parsed, classes=classes, features=6)


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
