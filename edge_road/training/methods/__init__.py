"""Training methods, one file each, chosen by the name in the recipe."""

from __future__ import annotations

from collections.abc import Callable

from edge_road.recipe_method import MethodSettings
from edge_road.training.methods.base import Method, Step
from edge_road.training.methods.discriminative import Discriminative
from edge_road.training.methods.softmax import Softmax

__all__ = ["METHODS", "Method", "Step", "build_method"]

METHODS: dict[str, Callable[..., Method]] = {
    "softmax": Softmax,
    "discriminative": Discriminative,
}


def build_method(settings: MethodSettings, classes: int, features: int) -> Method:
    return METHODS[settings.name](settings, classes, features)
