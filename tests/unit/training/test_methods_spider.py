"""SPIDER: how sure one may be of a perturbed picture, and what the model learns of it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_methods import LABELS, Recorder, method_of, seeded
from torch.nn.functional import cross_entropy

from edge_road.errors import ConfigError
from edge_road.nn import losses
from edge_road.recipe_method import SphereSettings
from edge_road.training.methods.spider import Spheres, confidence

IMAGES = torch.rand(12, 3, 16, 16, generator=seeded(5))
classes_and_xi = st.integers(2, 30).flatmap(
    lambda c: st.tuples(st.just(c), st.floats(0.0, 1 - 1 / c, exclude_max=True).map(lambda xi: 0.999 * xi))
)


@given(classes_and_xi, st.floats(0.1, 100.0))
def test_confidence_is_one_up_to_a_quarter_and_a_little_above_guessing_at_tau(
    known: tuple[int, float], tau: float
) -> None:
    classes, xi = known
    radii = torch.linspace(0.0, tau, 41, dtype=torch.float64)
    sure = confidence(radii, tau, xi, classes)
    assert torch.all(sure[radii <= tau / 4 * (1 - 1e-9)] == 1.0)
    assert sure[-1].item() == pytest.approx(1 / classes + xi, rel=1e-6)
    assert torch.all(sure.diff() <= 1e-12)
    assert torch.all(sure >= 1 / classes - 1e-9)


def test_the_other_classes_share_the_rest() -> None:
    targets = losses.soft_labels(torch.tensor([2, 0]), torch.tensor([0.7, 1.0]), 4)
    assert targets[0].tolist() == pytest.approx([0.1, 0.1, 0.7, 0.1])
    assert targets[1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_every_picture_lies_on_the_sphere_that_its_label_tells_of() -> None:
    tau = 8.0 * math.sqrt(16 * 16 * 3 / 3072)  # scaled from the paper's 32 x 32
    copies, targets = Spheres(SphereSettings(tau=8.0, xi=0.1), 3).around(IMAGES, LABELS, seeded())
    assert copies.min() >= 0.0
    assert copies.max() <= 1.0
    radii = (copies - IMAGES).flatten(1).norm(dim=1)
    assert radii.max() <= tau * 1.001
    assert radii.std() > 0.1 * tau
    expected = confidence(radii, tau, 0.1, 3)
    assert torch.allclose(targets[torch.arange(12), LABELS], expected, atol=2e-3)
    assert torch.allclose(targets.sum(dim=1), torch.ones(12))


def test_the_loss_is_cross_entropy_with_softened_labels_on_the_copies() -> None:
    model = Recorder()
    step = method_of("spider", tau=8.0, xi=0.1)(model, IMAGES, LABELS, seeded())
    copies, targets = Spheres(SphereSettings(tau=8.0, xi=0.1), 3).around(IMAGES, LABELS, seeded())
    assert torch.equal(model.seen[0], copies)
    assert torch.allclose(step.total, cross_entropy(model(copies).logits_BC, targets))


def test_discriminative_with_spider_aligns_its_copies_and_learns_their_labels() -> None:
    model, settings = Recorder(), {"tau": 8.0, "xi": 0.1}
    step = method_of("discriminative", perturbation="spider", **settings)(model, IMAGES, LABELS, seeded())
    alone = method_of("spider", **settings)(Recorder(), IMAGES, LABELS, seeded())
    assert torch.allclose(step.terms["spider"], alone.total)
    clean, copies = model.seen
    assert torch.equal(clean, IMAGES)
    plain = method_of("discriminative", lambda_align=0.0)(Recorder(), IMAGES, LABELS, seeded())
    for name, term in plain.terms.items():
        assert torch.allclose(step.terms[name], term), name
    centroids = torch.stack([model(IMAGES).features_BD[c == LABELS].mean(dim=0) for c in range(3)])
    expected = losses.alignment(model(copies).features_BD, LABELS, centroids, 0.5)
    assert torch.allclose(step.terms["alignment"], expected)


def test_copies_that_are_not_aligned_still_teach_their_labels() -> None:
    asked = method_of("discriminative", perturbation="spider", lambda_align=0.0, tau=8.0, xi=0.1)
    step = asked(Recorder(), IMAGES, LABELS, seeded())
    alone = method_of("spider", tau=8.0, xi=0.1)(Recorder(), IMAGES, LABELS, seeded())
    assert torch.allclose(step.terms["spider"], alone.total)
    assert step.terms["alignment"] == 0.0


@pytest.mark.parametrize("name", ["spider", "discriminative"])
def test_a_xi_that_leaves_no_doubt_is_refused(name: str) -> None:
    extra = {"perturbation": "spider"} if name == "discriminative" else {}
    method_of(name, xi=0.66, **extra)
    with pytest.raises(ConfigError, match="confidence") as caught:
        method_of(name, xi=0.67, **extra)
    assert caught.value.details["where"] == "method.xi"
