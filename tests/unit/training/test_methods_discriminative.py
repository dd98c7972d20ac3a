"""The discriminative method: which images, centroids and weights go into which term."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from edge_road.nn import losses
from edge_road.nn.backbone import Backbone
from edge_road.nn.centroids import batch_centroids
from edge_road.nn.model import Output, RoadModel
from edge_road.nn.noise import add_gaussian_noise
from edge_road.recipe_method import DiscriminativeMethod
from edge_road.training.methods import build_method
from edge_road.training.methods.base import forward_pair
from edge_road.training.methods.discriminative import Discriminative

LABELS = torch.arange(12) % 3


class Recorder(RoadModel):
    """A small model that remembers the images of each pass."""

    def __init__(self, normalised: bool = False) -> None:
        torch.manual_seed(0)
        layers = [nn.BatchNorm2d(3)] if normalised else []
        module = nn.Sequential(*layers, nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        super().__init__(Backbone("small", module, 8, (0.5,) * 3, (0.1,) * 3), features=6, classes=3)
        nn.init.normal_(self.feature_layer.weight)  # spread beyond delta_v, so that every term counts
        self.seen: list[Tensor] = []

    def forward(self, images_BCHW: Tensor) -> Output:
        self.seen.append(images_BCHW)
        return super().forward(images_BCHW)


def method_of(**changes: object) -> Discriminative:
    method = build_method(DiscriminativeMethod.model_validate(changes), classes=3, features=6)
    assert isinstance(method, Discriminative)
    return method


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images() -> Tensor:
    return torch.rand(12, 3, 8, 8, generator=seeded(5))


def test_the_total_is_the_weighted_sum_of_the_five_terms(images: Tensor) -> None:
    weights = {"alpha": 2.0, "beta": 3.0, "gamma_reg": 0.5, "lambda_align": 4.0}
    model = Recorder()
    step = method_of(**weights, centroids="naive")(model, images, LABELS, seeded())

    clean = model(images)
    noisy = model(add_gaussian_noise(images, 40 / 255, seeded()))
    m, _ = batch_centroids(clean.features_BD, LABELS, 3)
    W, b = model.classifier.weight, model.classifier.bias
    expected = {
        "softmax": cross_entropy(clean.logits_BC, LABELS),
        "compactness": 2.0 * losses.compactness(clean.features_BD, LABELS, m, 0.5),
        "margin": 3.0 * losses.margin(m, LABELS, W, b, 3.0),
        "norm_penalty": 0.5 * losses.norm_penalty(m, LABELS),
        "alignment": 4.0 * losses.alignment(noisy.features_BD, LABELS, m, 0.5),
    }
    assert list(step.terms) == list(expected)
    for name, value in expected.items():
        assert torch.allclose(step.terms[name], value), name
        assert value > 0, name
    assert torch.allclose(step.total, sum(expected.values(), torch.zeros(())))
    assert torch.equal(step.logits_BC, clean.logits_BC)


def test_the_noisy_copy_is_the_same_augmented_image_plus_noise(images: Tensor) -> None:
    model = Recorder()
    method_of(sigma=0.1)(model, images, LABELS, seeded(3))
    clean, noisy = model.seen
    assert torch.equal(clean, images)
    assert torch.equal(noisy, add_gaussian_noise(images, 0.1, seeded(3)))
    assert not torch.equal(noisy, images)


def test_centroids_come_from_clean_images_only(images: Tensor) -> None:
    model = Recorder()
    method = method_of(sigma=0.9)
    method(model, images, LABELS, seeded())
    expected, _ = batch_centroids(model(images).features_BD, LABELS, 3)
    assert torch.allclose(method.centroids.running_CD, expected)


def test_partial_gives_running_centroids_to_all_terms_but_the_margin(images: Tensor) -> None:
    model = Recorder()
    method = method_of(centroids="partial", momentum=0.5, gamma_reg=1.0)
    method(model, images.flip(0), LABELS, seeded())
    old = method.centroids.running_CD.clone()
    step = method(model, images, LABELS, seeded())

    features = model(images).features_BD
    naive, _ = batch_centroids(features, LABELS, 3)
    running = 0.5 * old + 0.5 * naive
    noisy = model(add_gaussian_noise(images, 40 / 255, seeded())).features_BD
    W, b = model.classifier.weight, model.classifier.bias
    assert all(term > 0 for term in step.terms.values())
    assert torch.allclose(step.terms["compactness"], losses.compactness(features, LABELS, running, 0.5))
    assert torch.allclose(step.terms["alignment"], losses.alignment(noisy, LABELS, running, 0.5))
    assert torch.allclose(step.terms["norm_penalty"], losses.norm_penalty(running, LABELS))
    assert torch.allclose(step.terms["margin"], losses.margin(naive, LABELS, W, b, 3.0))
    assert not torch.allclose(losses.margin(running, LABELS, W, b, 3.0), step.terms["margin"])


def test_with_nothing_to_align_no_noisy_pass_is_made(images: Tensor) -> None:
    model = Recorder()
    step = method_of(lambda_align=0.0)(model, images, LABELS, seeded())
    assert len(model.seen) == 1
    assert "alignment" not in step.terms


def test_one_joint_pass_equals_two_where_no_batch_norm_tells_them_apart(images: Tensor) -> None:
    two, joint = (
        method_of(passes=passes)(Recorder(), images, LABELS, seeded()) for passes in ("two", "joint")
    )
    assert torch.allclose(two.total, joint.total, atol=1e-5)
    model = Recorder()
    method_of(passes="joint")(model, images, LABELS, seeded())
    assert [len(batch) for batch in model.seen] == [24]


def test_two_passes_keep_the_batch_statistics_of_clean_images_clean(images: Tensor) -> None:
    model = Recorder(normalised=True)
    alone = model(images)
    clean, _ = forward_pair(model, images, torch.zeros_like(images), "two")
    mixed, _ = forward_pair(model, images, torch.zeros_like(images), "joint")
    assert torch.allclose(alone.features_BD, clean.features_BD)
    assert not torch.allclose(alone.features_BD, mixed.features_BD)


def test_the_state_dict_carries_the_centroids_into_a_new_method(images: Tensor) -> None:
    model = Recorder()
    before = method_of()
    before(model, images, LABELS, seeded())
    after = method_of()
    after.load_state_dict(before.state_dict())
    steps = [method(model, images.flip(0), LABELS, seeded()) for method in (before, after)]
    assert torch.equal(steps[0].total, steps[1].total)
    assert before.state_dict()["centroids.running_CD"].abs().sum() > 0


def test_eval_mode_leaves_the_centroids_alone(images: Tensor) -> None:
    method = method_of().eval()
    method(Recorder(), images, LABELS, seeded())
    assert not method.centroids.seen_C.any()


@pytest.mark.parametrize(("delta_d", "warned"), [(0.9, True), (1.0, True), (1.001, False), (3.0, False)])
def test_a_margin_too_small_for_proposition_5_2_is_warned_of(
    delta_d: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        method_of(delta_v=0.5, delta_d=delta_d)
    assert ("Proposition 5.2" in caplog.text) == warned


def test_training_with_it_makes_compact_classes_with_wide_margins() -> None:
    """Three colours: a few steps bring every term but softmax near zero, for noisy copies too."""
    torch.manual_seed(0)
    colours = torch.tensor([[0.8, 0.2, 0.2], [0.2, 0.8, 0.2], [0.2, 0.2, 0.8]])
    images = colours[LABELS][:, :, None, None].expand(12, 3, 8, 8) + 0.05 * torch.randn(12, 3, 8, 8)
    model, method, generator = Recorder(), method_of(gamma_reg=0.0), seeded()
    descent = torch.optim.Adam(model.parameters(), lr=0.02)
    first = method(model, images, LABELS, generator).total.item()
    for _ in range(150):
        step = method(model, images, LABELS, generator)
        descent.zero_grad()
        step.total.backward()
        descent.step()
    assert step.total.item() < 0.05 * first
    assert step.terms["margin"].item() < 0.05
    assert step.logits_BC.argmax(dim=1).tolist() == LABELS.tolist()
