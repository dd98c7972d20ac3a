"""One training step: batch to loss to new weights, alone or together with other processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from edge_road.nn.model import RoadModel
from edge_road.nn.separate_norm import keep_noisy_apart
from edge_road.nn.shared_norm import share_batch_norm
from edge_road.recipe import Recipe, TrainingSettings
from edge_road.training.ema import WeightAverage
from edge_road.training.methods import Method, Step
from edge_road.training.optim import build_optimizer
from edge_road.training.precision import LossScale, autocast_type
from edge_road.training.ranks import Group
from edge_road.training.snapshot import trained_parameters


class _Lesson(nn.Module):
    """Model and method as one module, because gradients of several passes are averaged together."""

    def __init__(self, model: RoadModel, method: Method) -> None:
        super().__init__()
        self.model = model
        self.method = method

    def forward(self, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator) -> Step:
        step: Step = self.method(self.model, images_BCHW, labels_B, generator)
        return step


def prepare_model(model: RoadModel, settings: TrainingSettings, device: torch.device, group: Group) -> None:
    """Settings that live in the model itself."""
    model.to(device).to(memory_format=torch.channels_last)
    model.autocast = autocast_type(settings.precision, device)
    if settings.batch_norm == "separate":
        keep_noisy_apart(model)
    if not group.is_alone:
        share_batch_norm(model)
    if settings.compile:
        model.compile()


class Teacher:
    """Owns what changes the weights: optimizer, gradient clipping, loss scale, moving average."""

    def __init__(self, recipe: Recipe, model: RoadModel, method: Method, group: Group) -> None:
        settings = recipe.training
        parameters = trained_parameters(model, method)
        lesson = _Lesson(model, method)
        self.lesson: nn.Module = lesson if group.is_alone else _averaging(lesson)
        self.optimizer = build_optimizer(parameters, recipe.optimizer)
        self.loss_scale = LossScale(model.autocast, next(model.parameters()).device)
        self.average = WeightAverage(model, settings.ema_decay) if settings.ema_decay else None
        self._clip_norm = settings.clip_norm
        self._parameters = list(parameters.values())

    def loss(self, images_BCHW: Tensor, labels_B: Tensor, generator: torch.Generator) -> Step:
        step: Step = self.lesson(images_BCHW, labels_B, generator)
        return step

    def update(self, step: Step) -> None:
        scaler = self.loss_scale.scaler
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(scaler.scale(step.total))
        if self._clip_norm:
            scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self._parameters, self._clip_norm)
        scaler.step(self.optimizer)
        scaler.update()
        if self.average:
            self.average.update()


def _averaging(lesson: _Lesson) -> DistributedDataParallel:
    # Buffers need no broadcast: batch norm and centroids see the whole batch in every process.
    return DistributedDataParallel(lesson, broadcast_buffers=False, gradient_as_bucket_view=True)
