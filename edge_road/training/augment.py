"""Random views of training pictures, each decided by (seed, epoch, index) alone.

The only module that knows albumentations.
"""

from __future__ import annotations

import math
import os
import random
import threading
from typing import Any

import cv2
import numpy as np

from edge_road.frames import Image
from edge_road.recipe import AugmentSettings

os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # else the import asks a server for a newer version

import albumentations


class Augmentation:
    """Safe to share between threads: albumentations keeps state, so each thread has its own pipeline."""

    def __init__(self, settings: AugmentSettings, seed: int) -> None:
        self._settings = settings
        self._seed = seed
        self._thread = threading.local()

    def view(self, image: Image, epoch: int, index: int) -> Image:
        """The same bytes for the same (seed, epoch, index), in any thread and any order."""
        pipeline = self._pipeline()
        generator = np.random.default_rng((self._seed, epoch, index))
        # `set_random_seed` would seed every transform alike, so that a flip always came with a perspective.
        pipeline.set_random_state(generator, random.Random(int(generator.integers(2**62))))
        return np.ascontiguousarray(pipeline(image=image)["image"])

    def _pipeline(self) -> Any:
        if not hasattr(self._thread, "pipeline"):
            self._thread.pipeline = albumentations.Compose(transforms(self._settings))
        return self._thread.pipeline


def transforms(settings: AugmentSettings) -> list[Any]:
    """In the paper's order; a part that is set to 0 is left out."""
    jitter, black = settings.color_jitter, settings.corners == "black"
    border = cv2.BORDER_CONSTANT if black else cv2.BORDER_REFLECT_101
    shift = (-settings.padded_crop, settings.padded_crop)
    chosen = {
        # Cutting from a padded picture is moving it by whole pixels.
        albumentations.Affine(
            translate_px={"x": shift, "y": shift}, interpolation=cv2.INTER_NEAREST, border_mode=border, p=1.0
        ): settings.padded_crop,
        albumentations.ColorJitter(
            brightness=jitter, contrast=jitter, saturation=jitter, hue=0, p=1.0
        ): jitter,
        albumentations.Rotate(
            limit=settings.rotation_degrees, border_mode=border, p=1.0
        ): settings.rotation_degrees,
        albumentations.Perspective(
            scale=(_corner_scale(settings.perspective),) * 2,
            fit_output=black,
            p=settings.perspective_probability,
        ): settings.perspective,
        albumentations.HorizontalFlip(p=settings.flip): settings.flip,
        albumentations.Erasing(fill=0, p=settings.erase): settings.erase,
    }
    return [transform for transform, strength in chosen.items() if strength > 0]


def _corner_scale(distortion: float) -> float:
    """torchvision moves corners by U(0, distortion / 2) of a side, albumentations by |N(0, scale)|."""
    return distortion / 4 * math.sqrt(math.pi / 2)  # equal means
