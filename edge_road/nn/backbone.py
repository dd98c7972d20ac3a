"""Backbones by name: timm's, and torchvision's as `torchvision/<name>`, without their ImageNet heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import timm
from torch import nn
from torchvision import models

from edge_road.errors import ConfigError, nearest
from edge_road.preprocess import Triple

TORCHVISION = "torchvision/"
_IMAGENET_MEAN = (0.485, 0.456, 0.406)
_IMAGENET_STD = (0.229, 0.224, 0.225)
# No linear head to cut, or auxiliary outputs while training.
_UNSUITED = {"googlenet", "inception_v3", "squeezenet1_0", "squeezenet1_1"}


@dataclass(frozen=True)
class Backbone:
    """A network from normalised images to one pooled vector each."""

    name: str
    module: nn.Module
    width: int
    """length of the pooled vector"""
    mean: Triple
    std: Triple
    head: tuple[str, ...] = ()
    """the layers of the ImageNet head that were cut off, as published weights name them"""


def build_backbone(name: str, stem: str = "standard") -> Backbone:
    """Freshly initialised from torch's global seed."""
    backbone = _published(name)
    if stem == "small":
        _shrink_stem(backbone)
    return backbone


def stages(module: nn.Module) -> list[nn.Module]:
    """The stages of a known family, in order; none of an unknown one."""
    if isinstance(module, (timm.models.MobileNetV3, timm.models.EfficientNet)):
        return list(module.blocks)
    if isinstance(module, (models.MobileNetV3, models.EfficientNet)):
        return list(module.features)
    if isinstance(module, (timm.models.ResNet, models.ResNet)):
        return [module.get_submodule(f"layer{number}") for number in range(1, 5)]
    return []


def inner_stages(module: nn.Module) -> list[nn.Module]:
    """All but the last."""
    return stages(module)[:-1]


def timm_names() -> list[str]:
    """Architectures, and architectures with the tag of their published weights."""
    return [*timm.list_models(), *timm.list_pretrained()]


def torchvision_names() -> list[str]:
    names: list[str] = models.list_models(module=models)
    return [TORCHVISION + name for name in names if name not in _UNSUITED]


def _published(name: str) -> Backbone:
    if name in torchvision_names():
        return _from_torchvision(name)
    if name in timm_names():
        return _from_timm(name)
    raise _unknown(name)


def _shrink_stem(backbone: Backbone) -> None:
    """As ResNets are used on 32x32 pictures: the first stage has the full size instead of a quarter."""
    module: Any = backbone.module
    plain = isinstance(module, (timm.models.ResNet, models.ResNet)) and isinstance(module.conv1, nn.Conv2d)
    if not plain:
        raise ConfigError(
            "only a ResNet that begins with one convolution has a small stem",
            where="model.stem",
            got=f"'small' with {backbone.name}",
            expected="resnet18, resnet50, wide_resnet50_2 and the like",
            fix="model.stem = 'standard'",
        )
    module.conv1 = nn.Conv2d(3, module.conv1.out_channels, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(module.conv1.weight, mode="fan_out", nonlinearity="relu")
    module.maxpool = nn.Identity()


def _from_timm(name: str) -> Backbone:
    module: Any = timm.create_model(name, num_classes=0)
    published = module.pretrained_cfg
    head = published.get("classifier") or ()
    return Backbone(
        name=name,
        module=module,
        width=module.head_hidden_size,
        mean=published["mean"],
        std=published["std"],
        head=(head,) if isinstance(head, str) else tuple(head),
    )


def _from_torchvision(name: str) -> Backbone:
    module: nn.Module = models.get_model(name.removeprefix(TORCHVISION), weights=None)
    head, width = _cut_last_linear(module)
    return Backbone(name, module, width, _IMAGENET_MEAN, _IMAGENET_STD, (head,))


def _cut_last_linear(module: nn.Module) -> tuple[str, int]:
    """What remains ends as timm's do: pooled, activated, without the head's dropout."""
    linears = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, nn.Linear)]
    name, last = linears[-1]
    module.set_submodule(name, nn.Identity())
    for sibling in module.get_submodule(name.rpartition(".")[0]).children():
        if isinstance(sibling, nn.Dropout):
            sibling.p = 0.0
    return name, last.in_features


def _unknown(name: str) -> ConfigError:
    match = nearest(name, [*timm_names(), *torchvision_names()])
    return ConfigError(
        "unknown backbone",
        where="model.backbone",
        got=repr(name),
        expected=f"a timm model, or {TORCHVISION} and a torchvision classifier",
        fix=f"did you mean '{match}'?" if match else None,
    )
