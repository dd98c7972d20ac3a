"""One epoch of training by everyone: ours, a bare torch loop, timm's library, Ultralytics' trainer."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import torch
from PIL import Image
from timm.data.loader import fast_collate
from timm.data.transforms import ToNumpy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter
from torch import Tensor
from torch.nn.functional import cross_entropy
from torchvision import transforms

from benchmarks.peers.network import Network
from benchmarks.peers.setup import python_of_peers
from benchmarks.training_material import CLASSES, Plan, bare_model, labels, trainer_of
from edge_road.frames import Images

ROOT = Path(__file__).resolve().parents[1]
OURS, BARE, TIMM, PEER = "edge_road, softmax", "bare torch loop", "timm", "Ultralytics"
DISCRIMINATIVE = "edge_road, discriminative"
Epoch = Callable[[], float]
"""trains for one epoch and returns its seconds"""


@contextmanager
def loops(images_NHWC: Images, home: Path, plan: Plan) -> Iterator[dict[str, Epoch]]:
    """The same pictures, operations, network, batch size and threads; one worker prepares batches."""
    ours, disc = (trainer_of(m, images_NHWC, home / m, plan) for m in ("softmax", "discriminative"))
    rivals: dict[str, Epoch] = {
        OURS: lambda: _seconds(lambda: ours._train_epoch(0)),
        DISCRIMINATIVE: lambda: _seconds(lambda: disc._train_epoch(0)),
        BARE: _bare(ours),
        TIMM: _timm(images_NHWC, plan),
    }
    if plan.peers and (python := python_of_peers()):
        _write_folders(images_NHWC, home / "pictures")
        rivals[PEER] = lambda: _ultralytics(python, home, plan)
    yield rivals


def _bare(trainer: Any) -> Epoch:
    """The shortest loop that does the same with our own batches."""
    model, optimizer = bare_model(trainer.recipe)

    def epoch() -> None:
        model.train()
        for images_BCHW, labels_B in trainer.train.shuffled(0, trainer.augmentation):
            optimizer.zero_grad(set_to_none=True)
            cross_entropy(model(images_BCHW).logits_BC, labels_B).backward()
            optimizer.step()

    return lambda: _seconds(epoch)


class _Decoded(torch.utils.data.Dataset[tuple[Any, int]]):
    """Pictures in memory, as our trainer keeps them; PIL and torchvision's operations, as timm uses them."""

    def __init__(self, images_NHWC: Images) -> None:
        self._pictures = [Image.fromarray(image) for image in images_NHWC]
        self._labels = labels(images_NHWC).tolist()
        self._view = transforms.Compose([*same_operations(), ToNumpy()])

    def __len__(self) -> int:
        return len(self._pictures)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._view(self._pictures[index]), self._labels[index]


def same_operations() -> list[Any]:
    """The paper's augmentation as torchvision has it."""
    return [
        transforms.ColorJitter(0.3, 0.3, 0.3),
        transforms.RandomRotation(10),
        transforms.RandomPerspective(0.5, p=0.5),
        transforms.RandomHorizontalFlip(),
    ]


def _timm(images_NHWC: Images, plan: Plan) -> Epoch:
    """What timm's training script does in an epoch on a CPU, from the parts of its library."""
    torch.manual_seed(0)
    model = Network(plan.backbone, len(CLASSES)).to(memory_format=torch.channels_last)
    optimizer = create_optimizer_v2(model, opt="adam", lr=1e-4)
    scheduler = CosineLRScheduler(optimizer, t_initial=1000)
    loader = torch.utils.data.DataLoader(
        _Decoded(images_NHWC),
        batch_size=plan.batch,
        shuffle=True,
        num_workers=1,
        collate_fn=fast_collate,
        persistent_workers=True,
    )
    meter = AverageMeter()

    def epoch() -> None:
        model.train()
        for number, (pixels_BCHW, labels_B) in enumerate(loader):
            _timm_step(model, optimizer, meter, pixels_BCHW.float().div_(255), labels_B)
            scheduler.step_update(number)

    return lambda: _seconds(epoch)


def _timm_step(model: Network, optimizer: Any, meter: Any, images_BCHW: Tensor, labels_B: Tensor) -> None:
    loss = cross_entropy(model(images_BCHW.contiguous(memory_format=torch.channels_last)), labels_B)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss.item(), len(labels_B))


def _ultralytics(python: Path, home: Path, plan: Plan) -> float:
    """It decodes files anew in every epoch and draws its own operations; the second epoch counts."""
    wishes = {
        "data": str(home / "pictures"),
        "backbone": plan.backbone,
        "weights": None,
        "classes": len(CLASSES),
        "size": plan.size,
        "batch": plan.batch,
        "epochs": 2,
        "threads": plan.threads,
        "seed": 0,
        "home": str(home / "peers"),
        "out": str(home / "peer.safetensors"),
    }
    seconds: float = train_with_ultralytics(python, wishes)["epoch_s"][-1]
    return seconds


def train_with_ultralytics(python: Path, wishes: dict[str, Any], timeout_s: float = 7200) -> dict[str, Any]:
    own = {"YOLO_CONFIG_DIR": wishes["home"], "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}
    Path(wishes["home"]).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(python), "-W", "ignore", "-m", "benchmarks.peers.ultralytics_train", json.dumps(wishes)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(wishes["threads"]), **own},
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _write_folders(images_NHWC: Images, folder: Path) -> None:
    """All of them to train on, one of each class to validate with."""
    for number, (image, label) in enumerate(zip(images_NHWC, labels(images_NHWC))):
        for split in ("train", "val") if number < len(CLASSES) else ("train",):
            place = folder / split / CLASSES[label]
            place.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(place / f"{number:04d}.jpg"), image[..., ::-1])


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s
