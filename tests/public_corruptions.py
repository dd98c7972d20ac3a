"""PSNR of the public `imagecorruptions` on rendered roads, and of ours beside it.

python tests/public_corruptions.py           # the table of docs/perturbations.md
python tests/public_corruptions.py measure   # the public figures anew, which needs:
pip install imagecorruptions==1.1.2 "setuptools<81"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from edge_road.frames import Images
from edge_road.synthetic.scenes import render_scene

PUBLIC_FILE = Path(__file__).with_suffix(".json")
SIDE_PX = 224  # theirs are made for it
STATES = ("dry", "wet", "icy") * 2
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")
BLUR = ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
DIGITAL = ("contrast", "elastic_transform", "pixelate", "jpeg_compression")
WEATHER = ("snow", "frost", "fog", "brightness")


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
    np.float_ = np.float64  # which numpy 2 has no longer
    clean_NHWC = roads()
    np.random.seed(0)

    def damaged_NHWC(name: str, severity: int) -> Images:
        return np.stack([corrupt(image, severity, name) for image in clean_NHWC])

    return {
        name: [round(psnr(clean_NHWC, damaged_NHWC(name, severity)), 2) for severity in range(1, 6)]
        for name in (*NOISE, *BLUR, *DIGITAL, *WEATHER)
    }


def ours(name: str) -> list[float]:
    from edge_road.evaluation.perturbations import SEVERITIES, perturb

    clean_NHWC = roads()
    return [psnr(clean_NHWC, perturb(clean_NHWC, f"{name}:{s}", seed=0, run=0)) for s in SEVERITIES]


def table() -> str:
    lines = ["| corruption | 1 | 2 | 3 | 4 | 5 | at most |", "|---|---|---|---|---|---|---|"]
    for name, public in json.loads(PUBLIC_FILE.read_text()).items():
        pairs = list(zip(ours(name), public))
        most = max(abs(own / other - 1) for own, other in pairs)
        cells = [f"{own:.1f} / {other:.1f}" for own, other in pairs]
        lines.append(f"| {' | '.join([name, *cells, f'{most:.1%}'.replace('%', ' %')])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        PUBLIC_FILE.write_text(json.dumps(measured(), indent=1) + "\n")
    else:
        print(table())
