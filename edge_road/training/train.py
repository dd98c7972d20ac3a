"""Training as a whole: open data, build model and method, fit, write run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import cv2
import torch

import edge_road
from edge_road import workspace
from edge_road.config import settings_digest
from edge_road.datasets import RoadDataset, open_dataset
from edge_road.datasets.balance import class_weights
from edge_road.errors import ConfigError
from edge_road.files import sha256
from edge_road.nn.model import RoadModel, build_model, check_size
from edge_road.preprocess import Preprocessing
from edge_road.recipe import Recipe, TrainingSettings
from edge_road.run_record import RunRecord, write_record
from edge_road.training.batches import Batches
from edge_road.training.checkpoint import Identity, encode_tensors
from edge_road.training.distributed import joined_group
from edge_road.training.journal import EpochRecord
from edge_road.training.memory import keep_freed_memory
from edge_road.training.methods import build_method
from edge_road.training.pictures import check_test_pictures, open_pictures
from edge_road.training.progress import Progress
from edge_road.training.ranks import ALONE, Group
from edge_road.training.trainer import Trainer

Watch = Callable[[Trainer, EpochRecord], None]
"""called after each epoch, with the weights for use in the model"""


def train(
    recipe: Recipe, run: Path, progress: Progress, *, group: Group = ALONE, watch: Watch | None = None
) -> RunRecord:
    """The first of the processes also writes the record."""
    with joined_group(group, recipe.training):
        return _train(recipe, run, progress, group, watch)


def _train(recipe: Recipe, run: Path, progress: Progress, group: Group, watch: Watch | None) -> RunRecord:
    device = _prepare_machine(recipe.training, group)
    torch.manual_seed(recipe.seed)
    dataset = open_dataset(recipe.data)
    model = build_model(recipe.model, len(dataset.classes))
    method = build_method(recipe.method, len(dataset.classes), recipe.model.features)
    preprocessing = _preprocessing(recipe, model)
    check_size(model, recipe.model.backbone, recipe.input.height, recipe.input.width)
    progress.note(_summary(recipe, dataset, run))
    workers, memory_gb = len(os.sched_getaffinity(0)), recipe.training.memory_gb
    check_test_pictures(dataset, preprocessing, memory_gb=memory_gb, workers=workers)
    batches, validation = (
        _open_batches(recipe, dataset, split, preprocessing, device, group)
        for split in ("train", "validation")
    )
    if recipe.training.class_weights == "balanced":
        weights_C = class_weights(batches.pictures.labels_N, len(dataset.classes))
        method.class_weights_C = torch.tensor(weights_C, dtype=torch.float32)
    identity = _identity(recipe, dataset, batches, validation)
    trainer = Trainer(
        recipe,
        model,
        method,
        batches,
        validation,
        run=run,
        identity=identity,
        progress=progress,
        group=group,
        watch=watch,
    )
    best = trainer.fit()
    record = _record(recipe, identity, preprocessing, trainer, best)
    if group.is_first:
        write_record(run, record)
    return record


def _prepare_machine(settings: TrainingSettings, group: Group) -> torch.device:
    if settings.threads:
        torch.set_num_threads(settings.threads)
    keep_freed_memory()
    cv2.setNumThreads(1)  # our own threads prepare batches; OpenCV's would compete with torch
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("there is no CUDA device", where="training.device", fix="device = 'auto' or 'cpu'")
    torch.use_deterministic_algorithms(settings.deterministic)
    torch.backends.cudnn.benchmark = not settings.deterministic
    if settings.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    has_cuda = settings.device != "cpu" and torch.cuda.is_available()
    return torch.device("cuda", group.local_rank) if has_cuda else torch.device("cpu")


def _preprocessing(recipe: Recipe, model: RoadModel) -> Preprocessing:
    mean, std = model.normalisation
    return Preprocessing(**recipe.input.model_dump(), mean=mean, std=std)


def _open_batches(
    recipe: Recipe,
    dataset: RoadDataset,
    split: str,
    preprocessing: Preprocessing,
    device: torch.device,
    group: Group,
) -> Batches:
    settings = recipe.training
    pictures = open_pictures(
        dataset, split, preprocessing, memory_gb=settings.memory_gb, workers=len(os.sched_getaffinity(0))
    )
    return Batches(
        pictures,
        settings.batch_size,
        recipe.seed,
        settings.workers,
        device,
        settings.sampling,
        group.rank,
        group.ranks,
    )


def _identity(recipe: Recipe, dataset: RoadDataset, train: Batches, validation: Batches) -> Identity:
    return Identity(
        recipe=settings_digest(recipe),
        method=recipe.method.name,
        classes=dataset.classes.names,
        data=dataset.digest,
        images=(train.images, validation.images),
    )


def _record(
    recipe: Recipe, identity: Identity, preprocessing: Preprocessing, trainer: Trainer, best: EpochRecord
) -> RunRecord:
    return RunRecord(
        name=recipe.name,
        classes=identity.classes,
        backbone=recipe.model.backbone,
        stem=recipe.model.stem,
        features=recipe.model.features,
        heads=recipe.model.heads,
        preprocessing=preprocessing,
        method=recipe.method.name,
        seed=recipe.seed,
        data_digest=identity.data,
        recipe_digest=identity.recipe,
        weights_sha256=sha256(encode_tensors(trainer.best_weights)),
        git_commit=workspace.git_commit(),
        version=edge_road.__version__,
        epochs=len(trainer.history),
        best_epoch=best.epoch,
        validation_accuracy=best.validation_accuracy,
    )


def _summary(recipe: Recipe, dataset: RoadDataset, run: Path) -> str:
    train, validation = (len(dataset.splits[name]) for name in ("train", "validation"))
    return (
        f"{recipe.name}: {recipe.method.name} on {recipe.model.backbone} "
        f"at {recipe.input.height}x{recipe.input.width}\n"
        f"{train} training and {validation} validation pictures of {len(dataset.classes)} classes\n"
        f"run: {run}\npreparing the pictures ..."
    )
