"""A training of seconds: three classes that differ in their blue, a small network, three epochs."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

RECIPE = """
name = "tiny"
[data]
kind = "folder"
path = "{photos}"
[input]
height = 32
width = 32
[model]
backbone = "mobilenetv3_small_050"
features = 8
[optimizer]
schedule = "cosine"
learning_rate = 1e-3
[training]
epochs = 3
batch_size = 8
threads = 1
device = "cpu"
"""


def write_tiny_recipe(folder: Path, pictures: int, training: str = "") -> Path:
    """`training` is added to the last section."""
    generator = np.random.default_rng(0)
    for blue, name in enumerate(("dry", "wet", "icy")):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(pictures):
            picture = generator.integers(0, 160, (40, 40, 3), dtype=np.uint8)
            picture[..., 0] += np.uint8(40 * blue)
            cv2.imwrite(str(folder / "photos" / name / f"{number}.png"), picture)
    (folder / "tiny.toml").write_text(RECIPE.format(photos=folder / "photos") + training)
    return folder / "tiny.toml"
