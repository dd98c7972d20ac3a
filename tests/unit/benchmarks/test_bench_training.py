"""The training benchmark, small: everyone trains and prepares the same pictures."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="benchmarks are made where the training packages are")

import torch

from benchmarks import pipelines, training_loops, training_step
from benchmarks.peers.network import Network, tensors_of
from edge_road.nn.model import build_model
from edge_road.recipe import ModelSettings


def test_everyone_trains_on_the_same_pictures() -> None:
    outcome = training_step.measure(training_step.QUICK)
    assert set(outcome.figures["epoch_s"]) == {
        training_loops.OURS,
        training_loops.DISCRIMINATIVE,
        training_loops.BARE,
        training_loops.TIMM,
    }
    assert {pipelines.OURS, pipelines.TIMM, pipelines.TORCHVISION} <= set(outcome.figures["pipeline_s"])
    assert all(claim.got.median > 0 for claim in outcome.claims)


def test_the_peers_network_is_ours_tensor_by_tensor() -> None:
    """So that one laboratory can judge what a peer has trained."""
    theirs = Network("mobilenetv3_small_050", classes=3).eval()
    ours = build_model(ModelSettings(backbone="mobilenetv3_small_050"), 3).eval()
    ours.load_state_dict(tensors_of(theirs))
    images_BCHW = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(ours(images_BCHW).logits_BC, theirs(images_BCHW))
