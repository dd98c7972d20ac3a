"""The network: any backbone by name, features that the classifier sees, normalisation once and inside."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from edge_road.errors import ConfigError
from edge_road.nn.backbone import Backbone, build_backbone, inner_stages
from edge_road.nn.model import RoadModel, build_model, check_size
from edge_road.recipe import ModelSettings

SMALL = "tf_mobilenetv3_small_100"
BACKBONES = [
    SMALL,
    "mobilenetv3_large_100",
    "efficientnet_b0",
    "resnet18",
    "torchvision/mobilenet_v3_small",
    "torchvision/mobilenet_v3_large",
]


def model_of(backbone: str, features: int = 128, classes: int = 3) -> RoadModel:
    return build_model(ModelSettings(backbone=backbone, features=features), classes)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_backbones_take_small_and_rectangular_images_and_learn(backbone: str) -> None:
    model = model_of(backbone, features=32, classes=5)
    for height, width in ((96, 96), (120, 80)):
        features, logits = model(torch.rand(2, 3, height, width))
        assert (features.shape, logits.shape) == ((2, 32), (2, 5))
    logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_large_images_give_the_same_shapes() -> None:
    model = model_of(SMALL).eval()
    with torch.inference_mode():
        assert model(torch.rand(1, 3, 400, 500)).features_BD.shape == (1, 128)


@pytest.mark.parametrize(
    ("backbone", "width"),
    [
        (SMALL, 1024),
        ("mobilenetv3_large_100", 1280),
        ("resnet18", 512),
        ("torchvision/mobilenet_v3_small", 1024),
        ("torchvision/mobilenet_v3_large", 1280),
        ("torchvision/efficientnet_b0", 1280),
        ("torchvision/resnet18", 512),
        ("torchvision/shufflenet_v2_x0_5", 1024),
        ("torchvision/regnet_y_400mf", 440),
        ("torchvision/densenet121", 1024),
    ],
)
def test_the_pooled_vector_is_taken_after_the_last_activation(backbone: str, width: int) -> None:
    built = build_backbone(backbone)
    assert built.width == width
    with torch.inference_mode():
        assert built.module.eval()(torch.rand(1, 3, 64, 64)).shape == (1, width)


def test_torchvision_heads_leave_no_dropout_behind() -> None:
    module = build_backbone("torchvision/mobilenet_v3_small").module.train()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.eval()
    image = torch.rand(1, 3, 64, 64)
    assert torch.equal(module(image), module(image))


def test_the_classifier_sees_exactly_the_features() -> None:
    model = model_of(SMALL).eval()
    with torch.inference_mode():
        features, logits = model(torch.rand(2, 3, 64, 64))
        assert torch.equal(model.classifier(features), logits)


def test_mixed_precision_stays_inside_and_changes_little() -> None:
    model, images_BCHW = model_of(SMALL, features=16).eval(), torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        exact = model(images_BCHW)
        model.autocast = torch.bfloat16
        mixed = model(images_BCHW)
    for ours, theirs in zip(mixed, exact):
        assert ours.dtype == torch.float32
        assert not torch.equal(ours, theirs)
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=0.05 * float(theirs.abs().max()))
    assert "autocast" not in model.state_dict()


def test_features_are_linear_in_the_rectified_pooled_output() -> None:
    model = model_of(SMALL).eval()
    images = torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        pooled = model.backbone((images - 0.5) / 0.5)
        assert (pooled < 0).any()  # the ReLU has something to do
        expected = model.feature_layer(pooled.clamp(min=0))
        assert torch.allclose(model(images).features_BD, expected, atol=1e-6)
        assert (expected < 0).any()


class Probe(nn.Module):
    """A backbone that shows what it was given."""

    def forward(self, images_BCHW: torch.Tensor) -> torch.Tensor:
        return images_BCHW.mean(dim=(2, 3))


def test_images_are_normalised_once() -> None:
    model = RoadModel(Backbone("probe", Probe(), 3, (0.1, 0.2, 0.3), (0.5, 0.25, 0.2)), 3, 2)
    seen: list[torch.Tensor] = []
    model.backbone.register_forward_hook(lambda *call: seen.append(call[2]))
    model(torch.tensor([0.6, 0.7, 0.9]).view(1, 3, 1, 1).expand(1, 3, 4, 4))
    assert torch.allclose(seen[0], torch.tensor([[1.0, 2.0, 3.0]]), atol=1e-6)


@pytest.mark.parametrize(
    ("backbone", "mean", "std"),
    [
        (SMALL, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ("resnet18", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("torchvision/mobilenet_v3_small", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ],
)
def test_the_normalisation_is_the_one_the_backbone_was_published_with(
    backbone: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> None:
    model = model_of(backbone)
    assert model.normalisation == (mean, std)
    assert {"mean", "std"} <= set(model.state_dict())


@pytest.mark.parametrize("backbone", [SMALL, "torchvision/mobilenet_v3_small"])
def test_one_seed_gives_one_model(backbone: str) -> None:
    states = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        states.append(model_of(backbone).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["classifier.weight"], states[2]["classifier.weight"])


@pytest.mark.parametrize("backbone", ["resnet18", "torchvision/resnet18"])
def test_a_small_stem_keeps_the_size_of_the_picture(backbone: str) -> None:
    seen = {}
    for stem in ("standard", "small"):
        module = build_backbone(backbone, stem).module.eval()
        inner_stages(module)[0].register_forward_pre_hook(
            lambda _, inputs, s=stem: seen.update({s: inputs[0]})
        )
        assert module(torch.rand(1, 3, 32, 32)).shape == (1, 512)
    assert (seen["standard"].shape, seen["small"].shape) == ((1, 64, 8, 8), (1, 64, 32, 32))


@pytest.mark.parametrize("backbone", [SMALL, "resnet18d", "torchvision/efficientnet_b0"])
def test_a_backbone_without_one_first_convolution_has_no_small_stem(backbone: str) -> None:
    with pytest.raises(ConfigError, match=r"(?s)small stem.*model\.stem") as caught:
        build_model(ModelSettings(backbone=backbone, stem="small"), 3)
    assert backbone in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mobilenetv3_smal_100", "mobilenetv3_small_100"),
        ("torchvision/mobilenet_v3_smal", "torchvision/mobilenet_v3_small"),
        ("resnet18.a1_in1kk", "resnet18.a1_in1k"),
    ],
)
def test_an_unknown_backbone_names_the_nearest(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match="unknown backbone") as caught:
        model_of(name)
    assert meant in str(caught.value)


@pytest.mark.parametrize("name", ["hf-hub:timm/resnet18", "local-dir:/", "torchvision/googlenet", "", "/"])
def test_names_that_are_no_plain_model_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown backbone"):
        model_of(name)


def test_a_backbone_that_takes_one_size_only_is_named_with_that_size() -> None:
    name = "vit_tiny_patch16_224"
    model = build_model(ModelSettings(backbone=name), 3)
    check_size(model, name, 224, 224)
    with pytest.raises(ConfigError, match="cannot take pictures of this size") as error:
        check_size(model, name, 64, 64)
    assert "224" in error.value.details["got"]
    assert model.training
