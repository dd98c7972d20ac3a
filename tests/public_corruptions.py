"""PSNR of the public `imagecorruptions` on rendered roads; run as a script it measures them anew.

pip install imagecorruptions==1.1.2 "setuptools<81"
PYTHONPATH=. python tests/public_corruptions.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from edge_road.frames import Images
from edge_road.synthetic.scenes import render_scene

PUBLIC_FILE = Path(__file__).with_suffix(".json")
SIDE_PX = 224  # theirs are made for it
STATES = ("dry", "wet", "icy") * 2
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")
BLUR = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")


def roads() -> Images:
    return np.stack(
        [render_scene(s, np.random.default_rng(i), SIDE_PX, SIDE_PX) for i, s in enumerate(STATES)]
    )


def psnr(clean_NHWC: Images, damaged_NHWC: Images) -> float:
    """In decibels, the mean over the pictures."""
    errors_N = ((clean_NHWC.astype(float) - damaged_NHWC) ** 2).mean(axis=(1, 2, 3))
    return float(np.mean(10 * np.log10(255**2 / errors_N)))


def measured() -> dict[str, list[float]]:
    from imagecorruptions import corrupt, corruptions
    from skimage.filters import gaussian

    # Since scikit-image 0.19 the colours are an axis, not a flag.
    def in_its_old_words(*values, multichannel=False, **options):
        return gaussian(*values, channel_axis=-1 if multichannel else None, **options)

    corruptions.gaussian = in_its_old_words
    clean_NHWC = roads()
    np.random.seed(0)

    def damaged_NHWC(name: str, severity: int) -> Images:
        return np.stack([corrupt(image, severity, name) for image in clean_NHWC])

    return {
        name: [round(psnr(clean_NHWC, damaged_NHWC(name, severity)), 2) for severity in range(1, 6)]
        for name in (*NOISE, *BLUR, *DIGITAL)
    }


if __name__ == "__main__":
    PUBLIC_FILE.write_text(json.dumps(measured(), indent=1) + "\n")
