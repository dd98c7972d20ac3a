"""Two processes with half a batch each learn the same as one process with the whole batch."""

from __future__ import annotations

import math
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, distributed, nn

from edge_road.errors import ConfigError
from edge_road.nn.gather import gather_with_gradient
from edge_road.nn.model import Output
from edge_road.nn.shared_norm import share_batch_norm
from edge_road.recipe import Recipe, TrainingSettings
from edge_road.training.distributed import joined_group
from edge_road.training.lesson import Teacher
from edge_road.training.methods import build_method, clean_noisy, discriminative, stability
from edge_road.training.ranks import ALONE, Group
from edge_road.training.tally import Tally

METHODS = ("softmax", "clean_noisy", "stability", "discriminative", "large_margin", "center")
WEIGHTED = ("softmax weighted", "label_smoothing weighted", "discriminative weighted")
STEPS, BATCH, CLASSES, FEATURES = 3, 12, 4, 6
TOLERANCE = 1e-6

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["edge_road.training.train", "edge_road.training.progress"])


class NormalisedModel(nn.Module):
    """With batch norm, whose statistics the processes must share, and nothing random."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.feature_layer = nn.Linear(8, FEATURES)
        self.classifier = nn.Linear(FEATURES, CLASSES)

    def forward(self, images_BCHW: Tensor) -> Output:
        features_BD = self.feature_layer(self.trunk(images_BCHW).mean(dim=(2, 3)))
        return Output(features_BD, self.classifier(features_BD))


def same_noise(images: Tensor, sigma: float, generator: torch.Generator) -> Tensor:
    """In place of random numbers: the same for a picture, whichever process has it."""
    return (images + sigma * torch.sin(1000 * images)).clamp(0, 1)


def learn(name: str, group: Group) -> dict[str, Tensor]:
    """Loss terms, gradients and all state after a few steps on this process's share of the pictures."""
    recipe = Recipe.model_validate(
        {
            "name": "pair",
            "method": {"name": name.removesuffix(" weighted")},
            "optimizer": {"name": "sgd", "learning_rate": 0.1},
        }
    )
    torch.manual_seed(0)
    model: Any = NormalisedModel()
    model.autocast = None
    if not group.is_alone:
        share_batch_norm(model)
    method = build_method(recipe.method, CLASSES, FEATURES)
    if name in WEIGHTED:
        method.class_weights_C = torch.arange(1.0, 1.0 + CLASSES)
    teacher = Teacher(recipe, model, method, group)
    generator = torch.Generator().manual_seed(1)
    found = {}
    for number in range(STEPS):
        images_BCHW = torch.rand(BATCH, 3, 9, 9, generator=generator)
        # Unequal classes, and in the first batch one that only the first process has.
        labels_B = torch.randint(0, CLASSES - 1, (BATCH,), generator=generator)
        labels_B[0] = CLASSES - 1
        own = slice(group.rank, None, group.ranks)
        step = teacher.loss(images_BCHW[own], labels_B[own], generator)
        teacher.update(step)
        found |= {f"{number} term {key}": mean(value) for key, value in step.terms.items()}
        found |= {f"{number} gradient {k}": p.grad.clone() for k, p in model.named_parameters()}
    return found | {f"model {k}": t for k, t in model.state_dict().items()} | method.state_dict(prefix="m ")


def mean(term: Tensor) -> Tensor:
    """A term of the whole batch is the same in every process; one of its share is a mean of equal parts."""
    return gather_with_gradient(term.detach()[None]).mean(dim=0, keepdim=True)


def one_of_two(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    for module in (clean_noisy, discriminative, stability):
        module.add_gaussian_noise = same_noise  # type: ignore[attr-defined]
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    for name in (*METHODS, *WEIGHTED):
        save_file(contiguous(learn(name, Group(rank, 2, rank))), folder / f"{name}-{rank}.safetensors")
    uneven = torch.full((1 + rank, 2), float(rank), requires_grad=True)
    every = gather_with_gradient(uneven)
    (every * torch.arange(3.0)[:, None]).sum().backward()
    tally = Tally(torch.device("cpu"), losses=["loss"])
    if rank == 0:
        tally.add(torch.eye(2), torch.tensor([0, 0]), {"loss": torch.tensor(3.0)})
    tally.join()
    told = {"accuracy": tally.accuracy, **tally.losses}
    save_file({name: torch.tensor(v) for name, v in told.items()}, folder / f"tally-{rank}.safetensors")
    save_file({"every": every.detach(), "gradient": uneven.grad}, folder / f"uneven-{rank}.safetensors")
    distributed.destroy_process_group()


def contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    children = [processes.Process(target=one_of_two, args=(rank, folder)) for rank in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(240)
    assert [child.exitcode for child in children] == [0, 0]
    return folder


@pytest.mark.parametrize("name", [*METHODS, *WEIGHTED])
def test_terms_gradients_centroids_and_statistics_are_those_of_one_process(
    name: str, pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (clean_noisy, discriminative, stability):
        monkeypatch.setattr(module, "add_gaussian_noise", same_noise)
    alone = contiguous(learn(name, ALONE))
    for rank in range(2):
        together = load_file(pair / f"{name}-{rank}.safetensors")
        assert together.keys() == alone.keys()
        for key in alone:
            torch.testing.assert_close(together[key], alone[key], rtol=0, atol=TOLERANCE, msg=key)
    assert any(key.startswith("0 gradient") and bool(value.any()) for key, value in alone.items())


def test_shares_of_different_length_are_gathered_and_get_their_own_gradient(pair: Path) -> None:
    first, second = (load_file(pair / f"uneven-{rank}.safetensors") for rank in range(2))
    assert first["every"].tolist() == second["every"].tolist() == [[0, 0], [1, 1], [1, 1]]
    # Row weights 0, 1, 2; each process uses the gathered rows once.
    assert first["gradient"].tolist() == [[0, 0]]
    assert second["gradient"].tolist() == [[2, 2], [4, 4]]


def test_a_process_without_a_picture_learns_the_means_of_the_others(pair: Path) -> None:
    for rank in range(2):
        told = load_file(pair / f"tally-{rank}.safetensors")
        assert {name: float(value) for name, value in told.items()} == {"accuracy": 0.5, "loss": 3.0}


@pytest.mark.parametrize("size", [9, 2])
def test_a_batch_that_leaves_a_process_without_its_share_is_refused(size: int) -> None:
    """Of a batch with less than two pictures for each, none would ever be trained on."""
    group = joined_group(Group(0, 2, 0), TrainingSettings(batch_size=size))
    with pytest.raises(ConfigError, match="shared evenly"):
        group.__enter__()


def test_alone_nothing_is_gathered() -> None:
    tensor = torch.arange(3.0)
    assert gather_with_gradient(tensor) is tensor
    assert not math.isnan(float(tensor.sum()))
