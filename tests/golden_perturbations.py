"""Digests of every perturbation of one small picture; run as a script it writes them anew.

Only for a change that is meant: older reports are then no longer comparable.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from edge_road.evaluation.perturbations import SUITES, perturb
from edge_road.frames import Images

GOLDEN_FILE = Path(__file__).with_suffix(".json")
# Encoders differ between builds, so their pictures are held to a band of PSNR instead.
CODED = ("jpeg", "h264")


def picture() -> Images:
    """40 x 52: slopes, a bright bar and a fine pattern, from whole numbers alone."""
    rows_HW, columns_HW = np.indices((40, 52))
    slope_HW = 40 + 3 * rows_HW + 2 * columns_HW
    fine_HW = 23 * ((rows_HW * 7 + columns_HW * 13) % 5)
    channels = (slope_HW, 255 - slope_HW + fine_HW // 2, 30 + fine_HW + 2 * rows_HW)
    image = np.stack(channels, axis=2).clip(0, 255).astype(np.uint8)
    image[10:30, 24:28] = 250
    return image[None]


def digest(name: str) -> str:
    return hashlib.sha256(perturb(picture(), name, seed=7, run=3).tobytes()).hexdigest()


def digests() -> dict[str, str]:
    return {name: digest(name) for name in SUITES["all"] if not name.startswith(CODED)}


if __name__ == "__main__":
    GOLDEN_FILE.write_text(json.dumps(digests(), indent=1) + "\n")
