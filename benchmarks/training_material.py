"""Rendered roads and fresh networks for every trainer; random weights do not change the time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from edge_road.datasets.index import Labels
from edge_road.frames import Images
from edge_road.nn.model import RoadModel, build_model
from edge_road.recipe import ModelSettings, Recipe
from edge_road.synthetic.scenes import render_scene
from edge_road.training.batches import Batches
from edge_road.training.checkpoint import Identity
from edge_road.training.lesson import Teacher
from edge_road.training.methods import build_method
from edge_road.training.optim import build_optimizer
from edge_road.training.pictures import PicturesInMemory
from edge_road.training.progress import Silence
from edge_road.training.ranks import ALONE
from edge_road.training.trainer import Trainer

FEATURES = 128
CLASSES = ("dry", "wet", "icy")
Work = Callable[[], object]


@dataclass(frozen=True)
class Plan:
    rounds: int = 5
    size: int = 192
    batch: int = 64
    threads: int = os.cpu_count() or 1
    pictures: int = 512
    backbone: str = "tf_mobilenetv3_small_100"
    peers: bool = True
    cost: bool = True


def roads(plan: Plan) -> Images:
    """A few rendered roads, again and again."""
    few = min(12, plan.pictures)
    some = [render_scene(CLASSES[n % 3], np.random.default_rng(n), plan.size, plan.size) for n in range(few)]
    return np.stack([some[n % few] for n in range(plan.pictures)])


def labels(images_NHWC: Images, classes: int = 3) -> Labels:
    return (np.arange(len(images_NHWC)) % classes).astype(np.int64)


def recipe_of(method: dict[str, str], plan: Plan) -> Recipe:
    model = ModelSettings(backbone=plan.backbone, features=FEATURES)
    return Recipe.model_validate({"name": "bench", "method": method, "model": model})


def step_of(method: dict[str, str], images_NHWC: Images, plan: Plan, classes: int = 3) -> Work:
    """One step on one batch that is ready: forward, backward, optimiser."""
    recipe = recipe_of(method, plan)
    model = build_model(recipe.model, classes).to(memory_format=torch.channels_last)
    teacher = Teacher(recipe, model, build_method(recipe.method, classes, FEATURES), ALONE)
    batches = Batches(PicturesInMemory(images_NHWC, labels(images_NHWC, classes)), plan.batch)
    batch = next(batches.shuffled(0))
    generator = torch.Generator().manual_seed(0)
    return lambda: teacher.update(teacher.loss(*batch, generator))


def trainer_of(method: str, images_NHWC: Images, run: Path, plan: Plan) -> Trainer:
    recipe = recipe_of({"name": method}, plan)
    torch.manual_seed(0)
    pictures = PicturesInMemory(images_NHWC, labels(images_NHWC))
    return Trainer(
        recipe,
        build_model(recipe.model, len(CLASSES)),
        build_method(recipe.method, len(CLASSES), FEATURES),
        Batches(pictures, plan.batch, workers=1),
        Batches(pictures, plan.batch),
        run=run,
        identity=Identity(recipe="", method=method, classes=(), data="", images=(0, 0)),
        progress=Silence(),
    )


def bare_model(recipe: Recipe) -> tuple[RoadModel, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = build_model(recipe.model, len(CLASSES)).to(memory_format=torch.channels_last)
    return model, build_optimizer(dict(model.named_parameters()), recipe.optimizer)
