"""The road classifier: backbone, feature layer, classifier, with the normalisation inside.

Shape suffixes: B batch, C classes (of images: channels), H height, W width, P pooled, D features.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from edge_road.conditions import RSCD_CLASSES
from edge_road.errors import ConfigError
from edge_road.nn.backbone import Backbone, build_backbone
from edge_road.nn.heads import RscdHeads
from edge_road.nn.weights import drop_head, hub_tensors, load_strictly, read_tensors
from edge_road.preprocess import Triple
from edge_road.recipe import ModelSettings


class Output(NamedTuple):
    features_BD: Tensor
    logits_BC: Tensor


class RoadModel(nn.Module):
    """RGB images in [0, 1] to penultimate features q and logits Wq + b (Eq. 1)."""

    mean: Tensor
    std: Tensor
    autocast: torch.dtype | None = None
    """computes in this format where that is safe; outputs stay float32"""

    def __init__(self, backbone: Backbone, features: int, classes: int, heads: str = "flat") -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(backbone.mean).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(backbone.std).view(3, 1, 1))
        self.backbone = backbone.module
        self.feature_layer = nn.Linear(backbone.width, features)
        self.classifier = _classifier(heads, features, classes)

    def forward(self, images_BCHW: Tensor) -> Output:
        if self.autocast is None:
            return self._outputs(images_BCHW)
        with torch.autocast(images_BCHW.device.type, self.autocast):
            features_BD, logits_BC = self._outputs(images_BCHW)
        return Output(features_BD.float(), logits_BC.float())

    def _outputs(self, images_BCHW: Tensor) -> Output:
        pooled_BP = self.backbone((images_BCHW - self.mean) / self.std)
        features_BD = self.feature_layer(torch.relu(pooled_BP))
        return Output(features_BD, self.classifier(features_BD))

    @property
    def normalisation(self) -> tuple[Triple, Triple]:
        """(mean, std), for those who describe this model to others."""
        return _triple(self.mean), _triple(self.std)


def build_model(settings: ModelSettings, classes: int) -> RoadModel:
    """A model with random new layers (torch's global seed) and the backbone weights asked for."""
    backbone = build_backbone(settings.backbone, settings.stem)
    model = RoadModel(backbone, settings.features, classes, settings.heads)
    if settings.weights != "none":
        _load_backbone(backbone, settings.weights)
    return model


def check_size(model: RoadModel, backbone: str, height: int, width: int) -> None:
    """Some networks take pictures of one size only, and say so when they see the first one."""
    was_training = model.training
    try:
        with torch.no_grad():
            model.eval()(torch.zeros(1, 3, height, width))
    except (AssertionError, RuntimeError, ValueError, TypeError) as error:
        raise ConfigError(
            "the backbone cannot take pictures of this size",
            where="model.backbone, input.height and input.width",
            got=f"{backbone} at {height}x{width}: {str(error).splitlines()[0] if str(error) else error!r}",
            fix="give the pictures the size that the network asks for, or choose another backbone",
        ) from None
    finally:
        model.train(was_training)


def _load_backbone(backbone: Backbone, weights: str) -> None:
    if weights == "hub":
        tensors, where = hub_tensors(backbone.name), f"the published weights of {backbone.name}"
    else:
        tensors, where = read_tensors(Path(weights)), weights
    load_strictly(backbone.module, drop_head(tensors, backbone), where=where, model=backbone.name)


def _classifier(heads: str, features: int, classes: int) -> nn.Linear | RscdHeads:
    if heads == "flat":
        return nn.Linear(features, classes)
    if classes != len(RSCD_CLASSES):
        raise ConfigError(
            "three heads need the 27 RSCD classes",
            where="model.heads",
            got=f"{heads!r} with {classes} classes",
            fix="heads = 'flat'",
        )
    return RscdHeads(features)


def _triple(values: Tensor) -> Triple:
    red, green, blue = (round(value, 6) for value in values.flatten().tolist())
    return red, green, blue
