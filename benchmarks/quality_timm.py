"""Training as timm's script does it by default, from the parts of its library: the peer of our recipes.

SGD with Nesterov's momentum at 0.1 * batch / 256, cosine after five epochs of warm-up, weight decay
2e-5, label smoothing 0.1, random resized crops, flips and colour jitter 0.4; the best epoch by validation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from timm.data import create_transform
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.peers.network import Network, tensors_of

Samples = Sequence[tuple[Path, int]]
WARM_UP_EPOCHS = 5


@dataclass(frozen=True)
class Wishes:
    train: Samples
    validation: Samples
    backbone: str
    weights: str | None
    classes: int
    size: int
    batch: int
    epochs: int
    seed: int


class _Pictures(Dataset[tuple[Tensor, int]]):
    def __init__(self, samples: Samples, size: int, *, training: bool) -> None:
        self._samples = samples
        # The network normalises by itself, so pictures stay in [0, 1]; whole pictures are judged.
        self._view: Any = create_transform(
            size,
            is_training=training,
            mean=(0.0, 0.0, 0.0),
            std=(1.0, 1.0, 1.0),
            interpolation="bilinear",
            crop_pct=1.0,
            crop_mode="squash",
        )

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, label = self._samples[index]
        return self._view(Image.open(path).convert("RGB")), label


def train_with_timm(wishes: Wishes) -> tuple[dict[str, Tensor], float]:
    """The weights of the best epoch, and its validation accuracy."""
    torch.manual_seed(wishes.seed)
    model = Network(wishes.backbone, wishes.classes, weights=wishes.weights)
    model.to(memory_format=torch.channels_last)
    rate = 0.1 * wishes.batch / 256
    optimizer = create_optimizer_v2(model, opt="sgd", lr=rate, momentum=0.9, weight_decay=2e-5)
    scheduler, _ = create_scheduler_v2(
        optimizer,
        sched="cosine",
        num_epochs=wishes.epochs,
        warmup_epochs=min(WARM_UP_EPOCHS, wishes.epochs // 2),
        warmup_lr=1e-5,
        min_lr=0.0,
    )
    train, validation = _loaders(wishes)
    best: tuple[dict[str, Tensor], float] = {}, -1.0
    for epoch in range(wishes.epochs):
        _train_epoch(model, optimizer, train)
        accuracy = _accuracy(model, validation)
        best = (tensors_of(model), accuracy) if accuracy > best[1] else best
        scheduler.step(epoch + 1)
        print(f"  timm: epoch {epoch + 1} of {wishes.epochs}, validation {accuracy:.1%}", flush=True)
    return best


def _loaders(wishes: Wishes) -> tuple[DataLoader[Any], DataLoader[Any]]:
    train = _Pictures(wishes.train, wishes.size, training=True)
    validation = _Pictures(wishes.validation, wishes.size, training=False)
    return (
        DataLoader(train, wishes.batch, shuffle=True, num_workers=1, persistent_workers=True, drop_last=True),
        DataLoader(validation, wishes.batch),
    )


def _train_epoch(model: Network, optimizer: torch.optim.Optimizer, loader: DataLoader[Any]) -> None:
    model.train()
    criterion = LabelSmoothingCrossEntropy(smoothing=0.1)
    for images_BCHW, labels_B in loader:
        loss = criterion(model(images_BCHW.contiguous(memory_format=torch.channels_last)), labels_B)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def _accuracy(model: Network, loader: DataLoader[Any]) -> float:
    model.eval()
    right = total = 0
    for images_BCHW, labels_B in loader:
        right += int((model(images_BCHW).argmax(1) == labels_B).sum())
        total += len(labels_B)
    return right / total
