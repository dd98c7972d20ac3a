"""Every stage of a model as one vector a picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_methods import Recorder

from edge_road.nn.backbone import inner_stages, stages
from edge_road.nn.layer_features import FEATURES, MOST_STAGES, chosen_stages, layer_features
from edge_road.nn.model import RoadModel, build_model
from edge_road.recipe import ModelSettings


@pytest.fixture(scope="module")
def model() -> RoadModel:
    torch.manual_seed(0)
    return build_model(ModelSettings(backbone="test_efficientnet", features=5), 3).eval()


def test_a_layer_is_the_mean_of_a_stage_over_its_places(model: RoadModel) -> None:
    images_NCHW = torch.rand(5, 3, 48, 32)
    found = layer_features(model, images_NCHW, batch=2)
    assert list(found)[-1] == FEATURES
    assert list(found)[:-1] == list(chosen_stages(model))
    assert all(len(features_ND) == 5 for features_ND in found.values())
    heard: list[torch.Tensor] = []
    last = stages(model.backbone)[-1]
    hook = last.register_forward_hook(lambda module, inputs, output: heard.append(output))
    with torch.no_grad():
        features_BD = model(images_NCHW).features_BD
    hook.remove()
    assert np.allclose(found[f"stage {len(stages(model.backbone))}"], heard[0].mean(dim=(2, 3)), atol=1e-5)
    assert np.allclose(found[FEATURES], features_BD, atol=1e-5)


def test_nothing_listens_afterwards(model: RoadModel) -> None:
    layer_features(model, torch.rand(1, 3, 32, 32))
    assert not any(module._forward_hooks for module in model.modules())


def test_an_unknown_network_shows_its_features_alone() -> None:
    model = Recorder().eval()
    assert list(layer_features(model, torch.rand(2, 3, 16, 16))) == [FEATURES]


def test_many_stages_are_thinned_out_evenly_and_the_last_stays() -> None:
    model = build_model(ModelSettings(backbone="torchvision/mobilenet_v3_small", features=4), 3)
    count = len(stages(model.backbone))
    names = list(chosen_stages(model))
    assert len(names) == MOST_STAGES < count
    assert (names[0], names[-1]) == ("stage 1", f"stage {count}")
    assert len(inner_stages(model.backbone)) == count - 1
