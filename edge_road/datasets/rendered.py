"""Rendered roads as a data set: a key such as `test/wet/17` names one scene for ever."""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np

from edge_road.conditions import RSCD_CLASSES, STATES, ClassList
from edge_road.datasets.index import SPLITS, RoadDataset, Split
from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.recipe_data import SyntheticData


def open_rendered(settings: SyntheticData) -> RoadDataset:
    classes = ClassList(STATES if settings.labels == "road" else RSCD_CLASSES)
    splits = {name: _split(name, getattr(settings, name), classes) for name in SPLITS}
    origin = f"{settings.labels} {settings.height}x{settings.width} seed {settings.seed}"
    return RoadDataset(classes, splits, partial(render, settings), origin)


def render(settings: SyntheticData, key: str) -> Image:
    """The split is part of the key and the key seeds the scene: no two splits share one."""
    _, label, _ = key.split("/")
    generator = scene_generator(settings.seed, key)
    if settings.labels == "rscd":
        from edge_road.synthetic.patches import render_patch

        return render_patch(label, generator, settings.height, settings.width)
    from edge_road.synthetic.scenes import render_scene

    return render_scene(label, generator, settings.height, settings.width)


def scene_generator(seed: int, key: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}\n{key}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "little"))


def _split(name: str, images: int, classes: ClassList) -> Split:
    if images < len(classes):
        raise DataError(
            f"the {name} split has fewer scenes than there are classes",
            where="data." + name,
            got=images,
            expected=f"{len(classes)} or more",
        )
    counts = [len(range(position, images, len(classes))) for position in range(len(classes))]
    keys = tuple(f"{name}/{label}/{i}" for label, count in zip(classes.names, counts) for i in range(count))
    return Split(keys, np.repeat(np.arange(len(classes)), counts).astype(np.int64))
