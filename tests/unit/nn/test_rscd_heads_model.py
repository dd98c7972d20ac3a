"""Three heads make up 27 classes: a distribution, whose cross-entropy is that of the heads, masked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from edge_road.conditions import RSCD_CLASSES
from edge_road.errors import ConfigError
from edge_road.nn.heads import RscdHeads
from edge_road.nn.model import build_model
from edge_road.recipe import ModelSettings
from edge_road.rscd_heads import HEADS, MASKED, head_labels


@pytest.fixture
def heads() -> RscdHeads:
    torch.manual_seed(0)
    return RscdHeads(features=8).double()


def test_the_27_probabilities_add_up_to_one(heads: RscdHeads) -> None:
    logits_BC = heads(torch.randn(5, 8, dtype=torch.float64))
    assert logits_BC.shape == (5, 27)
    torch.testing.assert_close(logits_BC.exp().sum(dim=1), torch.ones(5, dtype=torch.float64))


def test_cross_entropy_is_the_sum_of_the_heads_without_what_the_label_masks(heads: RscdHeads) -> None:
    features_BD = torch.randn(27, 8, dtype=torch.float64)
    labels_B = torch.arange(27)
    flat = cross_entropy(heads(features_BD), labels_B, reduction="none")
    answers = torch.split(heads.linear(features_BD), [len(a) for a in HEADS.values()], dim=1)
    by_head = [
        cross_entropy(answer_BA, torch.from_numpy(label_B), ignore_index=MASKED, reduction="none")
        for answer_BA, label_B in zip(answers, head_labels(np.arange(27)))
    ]
    torch.testing.assert_close(flat, torch.stack(by_head).sum(dim=0))


def test_a_masked_head_learns_nothing_from_snow(heads: RscdHeads) -> None:
    snow = torch.tensor([RSCD_CLASSES.index("fresh_snow")])
    cross_entropy(heads(torch.randn(1, 8, dtype=torch.float64)), snow).backward()
    gradient_AD = heads.linear.weight.grad
    frictions = len(HEADS["friction"])
    assert gradient_AD is not None
    assert bool(gradient_AD[:frictions].any())
    torch.testing.assert_close(gradient_AD[frictions:], torch.zeros_like(gradient_AD[frictions:]))


def test_as_a_linear_classifier_it_is_exact_between_labels_that_answer_the_same_questions(
    heads: RscdHeads,
) -> None:
    first, second = (RSCD_CLASSES.index(name) for name in ("dry-asphalt-smooth", "wet-concrete-severe"))
    features_D = torch.randn(8, dtype=torch.float64)
    linear_C = heads.weight @ features_D + heads.bias
    logits_C = heads(features_D[None])[0]
    torch.testing.assert_close(linear_C[first] - linear_C[second], logits_C[first] - logits_C[second])


def test_a_model_is_built_by_its_settings_and_needs_27_classes() -> None:
    settings = ModelSettings(backbone="mobilenetv3_small_050", features=8, heads="rscd")
    model = build_model(settings, 27)
    assert model(torch.rand(2, 3, 32, 32)).logits_BC.shape == (2, 27)
    assert "classifier.linear.weight" in model.state_dict()
    assert not any("answers_AC" in name for name in model.state_dict()), "what is fixed is not stored"
    with pytest.raises(ConfigError, match="27 RSCD classes"):
        build_model(settings, 3)
