"""The plain rivals: noisy images, both kinds, stability, centres, softened labels."""

from __future__ import annotations

import pytest
import torch
from small_methods import LABELS, Recorder, method_of, seeded
from torch import Tensor
from torch.nn.functional import cross_entropy

from edge_road.nn.noise import add_gaussian_noise

IMAGES = torch.rand(12, 3, 8, 8, generator=seeded(5))
SIGMA = 0.1


def noisy_images() -> Tensor:
    return add_gaussian_noise(IMAGES, SIGMA, seeded())


def test_noisy_never_sees_a_clean_image() -> None:
    model = Recorder()
    step = method_of("noisy", sigma=SIGMA)(model, IMAGES, LABELS, seeded())
    assert len(model.seen) == 1
    assert torch.equal(model.seen[0], noisy_images())
    assert torch.allclose(step.total, cross_entropy(model(noisy_images()).logits_BC, LABELS))


def test_clean_noisy_is_cross_entropy_over_both_halves() -> None:
    model = Recorder()
    step = method_of("clean_noisy", sigma=SIGMA)(model, IMAGES, LABELS, seeded())
    both = model(torch.cat([IMAGES, noisy_images()])).logits_BC
    assert torch.allclose(step.total, cross_entropy(both, LABELS.repeat(2)))
    assert set(step.terms) == {"clean", "noisy"}


def test_stability_is_the_mean_distance_of_a_picture_to_its_noisy_copy() -> None:
    model = Recorder()
    step = method_of("stability", sigma=SIGMA, weight=2.0)(model, IMAGES, LABELS, seeded())
    clean, noisy = model(IMAGES).features_BD, model(noisy_images()).features_BD
    by_hand = sum(((q - p) ** 2).sum().sqrt().item() for q, p in zip(clean, noisy)) / len(clean)
    assert step.terms["stability"].item() == pytest.approx(2.0 * by_hand, rel=1e-5)
    assert torch.allclose(step.terms["softmax"], cross_entropy(model(IMAGES).logits_BC, LABELS))


def test_stability_is_zero_without_noise_and_softmax_remains() -> None:
    step = method_of("stability", sigma=0.0)(Recorder(), IMAGES, LABELS, seeded())
    plain = method_of("softmax")(Recorder(), IMAGES, LABELS, seeded())
    assert step.terms["stability"].item() == 0.0
    assert torch.equal(step.total, plain.total)
    model = Recorder()
    method_of("stability", sigma=0.0)(model, IMAGES, LABELS, seeded()).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", ["clean_noisy", "stability", "discriminative"])
def test_one_joint_pass_equals_two_where_no_batch_norm_tells_them_apart(name: str) -> None:
    two, joint = (
        method_of(name, sigma=SIGMA, passes=passes)(Recorder(), IMAGES, LABELS, seeded())
        for passes in ("two", "joint")
    )
    assert torch.allclose(two.total, joint.total, atol=1e-5)


def test_smoothed_labels_give_the_rest_to_the_other_classes() -> None:
    model = Recorder()
    step = method_of("label_smoothing", smoothing=0.3)(model, IMAGES, LABELS, seeded())
    log_p = model(IMAGES).logits_BC.log_softmax(dim=1)
    by_hand = -sum(
        (0.7 if c == label else 0.15) * log_p[i, c] for i, label in enumerate(LABELS) for c in range(3)
    ) / len(LABELS)
    assert torch.allclose(step.total, by_hand)


def test_without_smoothing_it_is_softmax() -> None:
    smooth = method_of("label_smoothing", smoothing=0.0)(Recorder(), IMAGES, LABELS, seeded())
    plain = method_of("softmax")(Recorder(), IMAGES, LABELS, seeded())
    assert torch.allclose(smooth.total, plain.total)


def test_center_loss_is_half_the_mean_squared_distance_to_the_centres() -> None:
    model, method = Recorder(), method_of("center", weight=0.5)
    method.centers_CD = torch.randn(3, 6, generator=seeded(2))
    centers = method.centers_CD.clone()
    step = method(model, IMAGES, LABELS, seeded())
    q = model(IMAGES).features_BD
    by_hand = sum(((q[i] - centers[label]) ** 2).sum() for i, label in enumerate(LABELS)) / len(LABELS)
    assert torch.allclose(step.terms["center"], 0.25 * by_hand)


def test_centres_follow_by_equation_4_and_only_in_training() -> None:
    model, method = Recorder(), method_of("center", rate=0.5)
    labels = torch.tensor([0, 0, 1] * 4)  # class 2 never appears
    q = model(IMAGES).features_BD.detach()
    method.eval()(model, IMAGES, labels, seeded())
    assert method.centers_CD.abs().sum() == 0
    method.train()(model, IMAGES, labels, seeded())
    for c, count in ((0, 8), (1, 4)):
        expected = 0.5 * q[labels == c].sum(dim=0) / (1 + count)
        assert torch.allclose(method.centers_CD[c], expected, atol=1e-6)
    assert method.centers_CD[2].abs().sum() == 0


def test_centres_are_in_the_state_dict_and_survive_a_batch_of_nan() -> None:
    method = method_of("center")
    method(Recorder(), IMAGES, LABELS, seeded())
    before = method.centers_CD.clone()
    again = method_of("center")
    again.load_state_dict(method.state_dict())
    assert torch.equal(again.centers_CD, before)
    method(Recorder(), IMAGES * torch.nan, LABELS, seeded())
    assert torch.equal(method.centers_CD, before)
