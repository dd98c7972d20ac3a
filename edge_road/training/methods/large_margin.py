"""Compact classes and wide margins, of clean images alone (large_margin_discriminative_loss, Eq. 4.3)."""

from __future__ import annotations

from edge_road.recipe_method import DiscriminativeMethod, LargeMarginMethod
from edge_road.training.methods.discriminative import Discriminative


class LargeMargin(Discriminative):
    """The discriminative method with nothing to align, and defaults of its own."""

    def __init__(self, settings: LargeMarginMethod, classes: int, features: int) -> None:
        shared = settings.model_dump(exclude={"name"})
        super().__init__(DiscriminativeMethod(**shared, lambda_align=0.0), classes, features)
