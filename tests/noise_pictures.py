"""Class folders of random pixels, for tests to which the pictures do not matter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np


def write_noise(folder: Path, counts: Mapping[str, int], side: int = 32) -> Path:
    generator = np.random.default_rng(0)
    for name, count in counts.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            picture = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
            cv2.imwrite(str(folder / name / f"{number}.png"), picture)
    return folder
