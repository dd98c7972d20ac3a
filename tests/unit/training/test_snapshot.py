"""A training that is taken apart into tensors and put together again goes on as if nothing happened."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from edge_road.recipe import OptimizerSettings
from edge_road.training.checkpoint import Checkpoint, Identity, Notes
from edge_road.training.optim import build_optimizer
from edge_road.training.snapshot import Snapshot, trained_parameters


class Counter(nn.Module):
    """A method with something learnt (center loss has such parameters) and something counted."""

    def __init__(self) -> None:
        super().__init__()
        self.centre = nn.Parameter(torch.zeros(2))
        self.register_buffer("steps", torch.tensor(0))


class Workshop:
    def __init__(self, optimizer: str) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 2))
        self.model.to(memory_format=torch.channels_last)
        self.method = Counter()
        settings = OptimizerSettings.model_validate({"name": optimizer, "learning_rate": 0.1})
        self.optimizer = build_optimizer(trained_parameters(self.model, self.method), settings)
        self.generator = torch.Generator().manual_seed(1)
        self.snapshot = Snapshot(self.model, self.method, self.optimizer, self.generator)

    def step(self) -> None:
        images = torch.randn(8, 1, 4, 4) + torch.randn(8, 1, 4, 4, generator=self.generator)
        loss = (self.model(images) - self.method.centre).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.method.steps += 1


def as_loaded(tensors: dict[str, Tensor], identity: Identity) -> Checkpoint:
    """Files give contiguous tensors that share no memory with the training."""
    copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    return Checkpoint(Notes(identity=identity, history=()), copies)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_a_restored_training_takes_the_same_steps(optimizer: str, identity: Identity) -> None:
    first = Workshop(optimizer)
    for _ in range(3):
        first.step()
    taken = as_loaded(first.snapshot.take(), identity)
    for _ in range(3):
        first.step()

    second = Workshop(optimizer)
    torch.randn(100)
    second.snapshot.restore(taken)
    for _ in range(3):
        second.step()

    ours, theirs = first.snapshot.take(), second.snapshot.take()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_names_tell_what_a_tensor_is(identity: Identity) -> None:
    workshop = Workshop("adam")
    workshop.step()
    names = workshop.snapshot.take().keys()
    assert {
        "model/0.weight",
        "method/centre",
        "method/steps",
        "optimizer/model.0.weight:exp_avg",
        "optimizer/method.centre:step",
        "random/torch",
        "random/method",
    } <= names


def test_restored_moments_have_the_memory_layout_of_their_weights(identity: Identity) -> None:
    workshop = Workshop("adam")
    workshop.step()
    taken = as_loaded(workshop.snapshot.take(), identity)
    workshop.snapshot.restore(taken)
    weight = workshop.model[0].weight
    assert workshop.optimizer.state[weight]["exp_avg"].stride() == weight.stride()
