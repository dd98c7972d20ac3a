"""A small network and a few coloured pictures, so that a whole training takes a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edge_road.nn.model import Output
from edge_road.recipe import Recipe
from edge_road.training.batches import Batches
from edge_road.training.checkpoint import Identity
from edge_road.training.journal import EpochRecord
from edge_road.training.methods import build_method
from edge_road.training.pictures import PicturesInMemory
from edge_road.training.trainer import Trainer


class SmallModel(nn.Module):
    """A road model in miniature: convolution, batch norm, dropout (torch's own random state), two layers."""

    def __init__(self, features: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1)
        )
        self.feature_layer = nn.Linear(8, features)
        self.classifier = nn.Linear(features, classes)

    def forward(self, images_BCHW: Tensor) -> Output:
        features_BD = self.feature_layer(self.trunk(images_BCHW).mean(dim=(2, 3)))
        return Output(features_BD, self.classifier(features_BD))


class SilentProgress:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.best_epochs: list[int] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def batch(
        self, epoch: int, batch: int, batches: int, losses: Mapping[str, float], accuracy: float
    ) -> None:
        pass

    def epoch(self, record: EpochRecord, is_best: bool) -> None:
        if is_best:
            self.best_epochs.append(record.epoch)


def coloured_pictures(count: int, seed: int = 0) -> PicturesInMemory:
    """Class 0 is reddish, 1 greenish, 2 bluish, under noise."""
    generator = np.random.default_rng(seed)
    labels_N = np.arange(count) % 3
    images_NHWC = generator.integers(0, 120, (count, 16, 16, 3), dtype=np.uint8)
    images_NHWC[np.arange(count), :, :, labels_N] += 60
    return PicturesInMemory(images_NHWC, labels_N.astype(np.int64))


IDENTITY = Identity(recipe="a", method="softmax", classes=("dry", "wet", "icy"), data="b", images=(30, 12))


@pytest.fixture
def pictures() -> Callable[..., PicturesInMemory]:
    return coloured_pictures


@pytest.fixture
def identity() -> Identity:
    return IDENTITY


@pytest.fixture
def make_trainer(tmp_path: Path) -> Callable[..., Trainer]:
    def make(
        run: Path = tmp_path / "run", pictures: PicturesInMemory | None = None, **sections: Any
    ) -> Trainer:
        training = {"epochs": 4, "batch_size": 8, "workers": 1, **sections.pop("training", {})}
        optimizer = {"learning_rate": 1e-2, "schedule": "constant", **sections.pop("optimizer", {})}
        recipe = Recipe(
            name="small", training=training, optimizer=optimizer, model={"features": 4}, **sections
        )
        torch.manual_seed(recipe.seed)
        model: Any = SmallModel()
        return Trainer(
            recipe,
            model,
            build_method(recipe.method, 3, 4),
            Batches(
                pictures or coloured_pictures(30),
                recipe.training.batch_size,
                recipe.seed,
                recipe.training.workers,
            ),
            Batches(coloured_pictures(12, seed=1), 8),
            run=run,
            identity=IDENTITY,
            progress=SilentProgress(),
        )

    return make
