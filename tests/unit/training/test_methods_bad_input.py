"""Settings that make no sense are refused or warned of; odd batches are survived."""

from __future__ import annotations

import logging

import pytest
import torch
from small_methods import LABELS, Recorder, method_of, seeded

from edge_road.config import load_settings
from edge_road.errors import ConfigError
from edge_road.recipe import Recipe
from edge_road.recipe_method import METHOD_KINDS, DiscriminativeMethod, LargeMarginMethod
from edge_road.training.methods import METHODS

IMAGES = torch.rand(12, 3, 8, 8, generator=seeded(5))


@pytest.mark.parametrize(
    ("method", "key", "value"),
    [
        ("spider", "tau", "0"),
        ("spider", "xi", "-0.1"),
        ("mixup", "alpha", "0"),
        ("nfm", "alpha", "-1"),
        ("nfm", "sigma_add", "-0.1"),
        ("noisy", "sigma", "1.1"),
        ("stability", "sigma", "-0.1"),
        ("discriminative", "sigma", "1.01"),
        ("discriminative", "momentum", "1.0"),
        ("large_margin", "delta_v", "0"),
        ("label_smoothing", "smoothing", "1.0"),
        ("center", "rate", "2"),
        ("nfm", "layers", "'last'"),
        ("discriminative", "perturbation", "'salt'"),
    ],
)
def test_a_setting_out_of_its_range_is_named(method: str, key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(Recipe, None, ["name=x", f"method={{name = '{method}'}}", f"method.{key}={value}"])
    assert key in caught.value.what
    assert caught.value.exit_code == 2


def test_a_smoothing_that_teaches_the_other_classes_is_refused() -> None:
    method_of("label_smoothing", smoothing=0.66)
    with pytest.raises(ConfigError, match="no more of a label") as caught:
        method_of("label_smoothing", smoothing=0.67)
    assert caught.value.details["where"] == "method.smoothing"


def test_a_key_of_another_method_is_refused_with_the_nearest_of_its_own() -> None:
    with pytest.raises(ConfigError, match=r"sigma_ad'") as caught:
        load_settings(Recipe, None, ["name=x", "method={name = 'nfm'}", "method.sigma_ad=0.1"])
    assert caught.value.details["to do"] == "did you mean 'sigma_add'?"


def test_names_of_settings_and_of_methods_agree() -> None:
    assert set(METHOD_KINDS) == set(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_batch_of_one_class_and_a_class_that_never_appears(name: str) -> None:
    model, method = Recorder(), method_of(name)
    for labels in (torch.zeros(12, dtype=torch.long), LABELS % 2):
        step = method(model, IMAGES, labels, seeded())
        step.total.backward()
        assert step.total.isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("delta_d", "told"),
    [(0.4, ["5.2.1", "5.2.2"]), (0.5, ["5.2.1", "5.2.2"]), (0.9, ["5.2.2"]), (1.1, [])],
)
@pytest.mark.parametrize("name", ["discriminative", "large_margin"])
def test_margins_too_small_for_the_radius_are_warned_of_with_the_proposition(
    name: str, delta_d: float, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        method_of(name, delta_v=0.5, delta_d=delta_d)
    assert [word for word in ("5.2.1", "5.2.2") if word in caplog.text] == told


def test_large_margin_is_discriminative_with_nothing_to_align() -> None:
    shared = {"delta_d": 4.0, "momentum": 0.7, "alpha": 0.5, "centroids": "momentum"}
    models = [Recorder(), Recorder()]
    names = [("large_margin", {}), ("discriminative", {"lambda_align": 0.0})]
    steps = []
    for model, (name, extra) in zip(models, names):
        method = method_of(name, **shared, **extra)
        method(model, IMAGES.flip(0), LABELS, seeded())
        steps.append(method(model, IMAGES, LABELS, seeded()))
        steps[-1].total.backward()
        assert len(model.seen) == 2, "no noisy pass"
    assert steps[0].terms == steps[1].terms
    for ours, theirs in zip(*(model.parameters() for model in models)):
        assert torch.equal(ours.grad, theirs.grad)


def test_large_margin_has_the_defaults_of_its_paper() -> None:
    theirs, ours = LargeMarginMethod(), DiscriminativeMethod()
    assert (theirs.delta_d, theirs.momentum) == (6.0, 0.99)
    assert (ours.delta_d, ours.momentum, ours.lambda_align) == (3.0, 0.9, 1.0)
