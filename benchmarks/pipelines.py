"""Decoded pictures to augmented float batches: ours, timm's, torchvision v2's, Ultralytics'."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from timm.data.loader import fast_collate
from timm.data.transforms import ToNumpy
from torchvision import transforms
from torchvision.transforms import v2

from benchmarks.peers.setup import python_of_peers
from benchmarks.training_loops import ROOT, same_operations
from benchmarks.training_material import Plan, labels
from edge_road.frames import Images
from edge_road.recipe import AugmentSettings
from edge_road.training.augment import Augmentation
from edge_road.training.batches import Batches
from edge_road.training.pictures import PicturesInMemory

OURS, TIMM, TORCHVISION = "edge_road", "timm", "torchvision v2"
OURS_LIGHT, PEER = "edge_road, one warp", "Ultralytics"
Pass = Callable[[], float]


def pipelines(images_NHWC: Images, home: Path, plan: Plan) -> dict[str, Pass]:
    """Seconds of one pass over all pictures. Ultralytics offers one warp (a crop), flip and colour jitter
    only, so it stands beside ours with one warp (a rotation), flip and jitter."""
    light = AugmentSettings(perspective=0.0)
    rivals: dict[str, Pass] = {
        OURS: _ours(images_NHWC, AugmentSettings(), plan),
        TIMM: _timm(images_NHWC, plan),
        TORCHVISION: _torchvision(images_NHWC, plan),
        OURS_LIGHT: _ours(images_NHWC, light, plan),
    }
    if plan.peers and (python := python_of_peers()):
        np.save(home / "pictures.npy", images_NHWC)
        rivals[PEER] = lambda: _ultralytics(python, home / "pictures.npy", plan)
    return rivals


def _ours(images_NHWC: Images, settings: AugmentSettings, plan: Plan) -> Pass:
    batches = Batches(PicturesInMemory(images_NHWC, labels(images_NHWC)), plan.batch)
    augmentation = Augmentation(settings, 0)
    return lambda: _seconds(lambda: list(batches.shuffled(0, augmentation)))


def _timm(images_NHWC: Images, plan: Plan) -> Pass:
    view = transforms.Compose([*same_operations(), ToNumpy()])
    pictures = [Image.fromarray(image) for image in images_NHWC]

    def one_pass() -> None:
        for start in range(0, len(pictures), plan.batch):
            group = pictures[start : start + plan.batch]
            pixels_BCHW, _ = fast_collate([(view(picture), 0) for picture in group])
            pixels_BCHW.float().div_(255)

    return lambda: _seconds(one_pass)


def _torchvision(images_NHWC: Images, plan: Plan) -> Pass:
    """On uint8 tensors, as its guide advises."""
    view = v2.Compose(
        [
            v2.ColorJitter(0.3, 0.3, 0.3),
            v2.RandomRotation(10, interpolation=v2.InterpolationMode.BILINEAR),
            v2.RandomPerspective(0.5, p=0.5),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )
    pictures_NCHW = torch.from_numpy(images_NHWC).permute(0, 3, 1, 2).contiguous()

    def one_pass() -> None:
        for group in pictures_NCHW.split(plan.batch):
            torch.stack([view(picture) for picture in group])

    return lambda: _seconds(one_pass)


def _ultralytics(python: Path, pictures: Path, plan: Plan) -> float:
    words = [str(pictures), str(plan.size), str(plan.batch), "1"]
    own = {"YOLO_CONFIG_DIR": str(pictures.parent), "YOLO_OFFLINE": "true", "OMP_NUM_THREADS": "1"}
    said = subprocess.check_output(
        [str(python), "-W", "ignore", "-m", "benchmarks.peers.ultralytics_pipeline", *words],
        cwd=ROOT,
        env={**os.environ, **own},
        text=True,
        timeout=600,
    )
    seconds: list[float] = json.loads(said.splitlines()[-1])["seconds"]
    return seconds[0]


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s
