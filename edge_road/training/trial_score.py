"""How good a training is after each epoch, on validation pictures, clean or perturbed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import torch

from edge_road.evaluation.perturbations import CLEAN, perturb
from edge_road.training.batches import as_floats
from edge_road.training.journal import EpochRecord
from edge_road.training.trainer import Trainer

_LARGEST_BONUS = 1e-4  # for a low loss: it decides between equal accuracies, as in training


class TrialScore:
    """Tells the study, and stops what is hopeless. The best epoch counts, as it is the one kept."""

    def __init__(self, trial: Any, under: tuple[str, ...]) -> None:
        self._trial = trial
        self._under = under
        self._epochs: list[tuple[EpochRecord, float]] = []

    def __call__(self, trainer: Trainer, record: EpochRecord) -> None:
        accuracy = float(np.mean([_accuracy(trainer, record, name) for name in self._under]))
        value = accuracy + _LARGEST_BONUS * math.exp(-record.validation_loss)
        self._epochs.append((record, value))
        self._trial.report(value, record.epoch)
        if self._trial.should_prune():
            raise optuna.TrialPruned

    @property
    def best(self) -> float:
        """Of the epoch whose weights are kept, which clean validation decides."""
        best_record, best_value = self._epochs[0]
        for record, value in self._epochs[1:]:
            if record.is_better_than(best_record):
                best_record, best_value = record, value
        return best_value


def _accuracy(trainer: Trainer, record: EpochRecord, name: str) -> float:
    if name == CLEAN:
        return record.validation_accuracy
    seen, right = 0, 0
    with torch.inference_mode():
        for images_BCHW, labels_B in trainer.validation.in_order():
            pixels_BHWC = images_BCHW.mul(255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
            perturbed_BHWC = perturb(pixels_BHWC, name, trainer.recipe.seed, 0, first=seen)
            logits_BC = trainer.model(as_floats(perturbed_BHWC, labels_B.device)).logits_BC
            right += int((logits_BC.argmax(dim=1) == labels_B).sum())
            seen += len(labels_B)
    return right / seen
