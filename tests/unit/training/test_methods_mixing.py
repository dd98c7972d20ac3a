"""Mixup, manifold mixup, noisy mixup and NFM are one method with different settings."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
import torch
from small_methods import LABELS, Recorder, method_of, seeded
from torch.nn.functional import cross_entropy

from edge_road.nn.backbone import build_backbone
from edge_road.nn.mixing import draw_mixture
from edge_road.nn.model import RoadModel

IMAGES = torch.rand(12, 3, 32, 32, generator=seeded(5))
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network() -> RoadModel:
    torch.manual_seed(0)
    return RoadModel(build_backbone("test_efficientnet"), features=6, classes=3).eval()


def total(network: RoadModel, name: str, seed: int, **settings: object) -> float:
    with torch.inference_mode():
        return float(method_of(name, **settings)(network, IMAGES, LABELS, seeded(seed)).total)


@pytest.mark.parametrize("seed", range(6))
def test_nfm_without_noise_is_manifold_mixup(network: RoadModel, seed: int) -> None:
    silent = {"sigma_add": 0.0, "sigma_mult": 0.0}
    assert total(network, "nfm", seed, **silent) == total(network, "manifold_mixup", seed)
    assert total(network, "nfm", seed) != total(network, "manifold_mixup", seed)


def test_on_the_input_alone_that_is_mixup_and_with_noise_noisy_mixup(network: RoadModel) -> None:
    silent = {"sigma_add": 0.0, "sigma_mult": 0.0}
    assert total(network, "nfm", 3, layers="input", **silent) == total(network, "mixup", 3)
    assert total(network, "nfm", 3, layers="input") == total(network, "noisy_mixup", 3)
    assert total(network, "noisy_mixup", 3, **silent) == total(network, "mixup", 3)
    assert total(network, "noisy_mixup", 3) != total(network, "noisy_mixup", 3, published_noise=True)


def test_mixup_is_the_loss_of_mixed_images_with_both_labels() -> None:
    model = Recorder()
    step = method_of("mixup", alpha=0.7)(model, IMAGES, LABELS, seeded())
    mixture = draw_mixture(12, 0.7, seeded(), CPU)
    share, other = mixture.share, mixture.partner_B
    logits = model(share * IMAGES + (1 - share) * IMAGES[other]).logits_BC
    by_hand = share * cross_entropy(logits, LABELS) + (1 - share) * cross_entropy(logits, LABELS[other])
    assert torch.allclose(step.total, by_hand)
    assert torch.equal(model.seen[0], IMAGES), "the images themselves stay as they are"


def test_every_layer_is_drawn_and_the_input_as_often_as_any(network: RoadModel) -> None:
    method, generator = method_of("nfm"), seeded()
    drawn = Counter(id(method._draw_layer(network.backbone, generator)) for _ in range(600))
    assert len(drawn) == 5, "four stages and the input"
    assert min(drawn.values()) > 60
    assert id(None) in drawn


def test_an_unknown_family_is_mixed_at_the_input_and_told_so_once(caplog: pytest.LogCaptureFixture) -> None:
    silent = {"sigma_add": 0.0, "sigma_mult": 0.0}
    with caplog.at_level(logging.WARNING):
        method = method_of("nfm", **silent)
        for _ in range(3):
            method(Recorder(), IMAGES, LABELS, seeded())
    assert caplog.text.count("Sequential") == 1
    assert "at the input alone" in caplog.text


def test_nothing_is_mixed_once_the_step_is_over(network: RoadModel) -> None:
    with torch.inference_mode():
        before = network(IMAGES).logits_BC
        for seed in range(4):
            total(network, "nfm", seed)
        assert torch.equal(network(IMAGES).logits_BC, before)


def test_gradients_flow_through_the_layers_before_the_mix() -> None:
    torch.manual_seed(0)
    model = RoadModel(build_backbone("test_efficientnet"), features=6, classes=3)
    method = method_of("nfm")
    method._draw_layer = lambda backbone, generator: backbone.blocks[2]  # type: ignore[method-assign]
    method(model, IMAGES, LABELS, seeded()).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert model.backbone.conv_stem.weight.grad.abs().sum() > 0
