"""Training methods, one file each, chosen by the name in the recipe."""

from __future__ import annotations

from collections.abc import Callable

from edge_road.recipe_method import MethodSettings
from edge_road.training.methods.base import Method, Step
from edge_road.training.methods.center import Center
from edge_road.training.methods.clean_noisy import CleanNoisy
from edge_road.training.methods.discriminative import Discriminative
from edge_road.training.methods.label_smoothing import LabelSmoothing
from edge_road.training.methods.large_margin import LargeMargin
from edge_road.training.methods.manifold_mixup import ManifoldMixup
from edge_road.training.methods.mixup import Mixup
from edge_road.training.methods.nfm import Nfm
from edge_road.training.methods.noisy import Noisy
from edge_road.training.methods.noisy_mixup import NoisyMixup
from edge_road.training.methods.softmax import Softmax
from edge_road.training.methods.spider import Spider
from edge_road.training.methods.stability import Stability

__all__ = ["METHODS", "Method", "Step", "build_method"]

METHODS: dict[str, Callable[..., Method]] = {
    "softmax": Softmax,
    "noisy": Noisy,
    "clean_noisy": CleanNoisy,
    "stability": Stability,
    "discriminative": Discriminative,
    "large_margin": LargeMargin,
    "center": Center,
    "label_smoothing": LabelSmoothing,
    "spider": Spider,
    "mixup": Mixup,
    "manifold_mixup": ManifoldMixup,
    "noisy_mixup": NoisyMixup,
    "nfm": Nfm,
}


def build_method(settings: MethodSettings, classes: int, features: int) -> Method:
    return METHODS[settings.name](settings, classes, features)
