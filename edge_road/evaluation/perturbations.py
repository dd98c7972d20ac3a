"""What befalls a picture between road and model, as seeded functions of (image, generator).

They act at model size. The first seven and the combinations are those of robust_discriminative_noise,
section 7 (Tables 3 and 4), given there for pictures of 400 x 500: sizes scale with the picture, masks
are black, and a combination acts in the order of its name.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import cv2
import numpy as np

from edge_road.errors import ConfigError, suggestion
from edge_road.frames import Image, Images

PAPER_HEIGHT, PAPER_WIDTH = 400, 500
CLEAN = "clean"
Apply = Callable[[Image, np.random.Generator], Image]


def gaussian(image: Image, rng: np.random.Generator, sigma_255: float) -> Image:
    """Noise of one standard deviation for all values, clipped as a camera saturates."""
    noisy = rng.standard_normal(image.shape, dtype=np.float32)
    noisy *= np.float32(sigma_255)
    noisy += image
    return np.asarray(np.clip(np.rint(noisy, out=noisy), 0, 255, out=noisy), dtype=np.uint8)


def occlusion(image: Image, rng: np.random.Generator, patches: int = 20, side_px: int = 70) -> Image:
    height, width = image.shape[:2]
    patch_height = _scaled(side_px, height, PAPER_HEIGHT)
    patch_width = _scaled(side_px, width, PAPER_WIDTH)
    masked: Image = image.copy()
    tops = rng.integers(0, height - patch_height + 1, patches)
    lefts = rng.integers(0, width - patch_width + 1, patches)
    for top, left in zip(tops, lefts):
        masked[top : top + patch_height, left : left + patch_width] = 0
    return masked


def stripes(image: Image, rng: np.random.Generator, count: int = 10, thickness_px: int = 6) -> Image:
    width = image.shape[1]
    thickness = _scaled(thickness_px, width, PAPER_WIDTH)
    masked: Image = image.copy()
    for left in rng.integers(0, width - thickness + 1, count):
        masked[:, left : left + thickness] = 0
    return masked


def down_up(image: Image, rng: np.random.Generator, factor: int = 3) -> Image:
    height, width = image.shape[:2]
    small_size = (max(1, round(width / factor)), max(1, round(height / factor)))
    small = cv2.resize(image, small_size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def jpeg(image: Image, rng: np.random.Generator, quality: int = 10) -> Image:
    _, content = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    blocky = np.asarray(cv2.imdecode(content, cv2.IMREAD_COLOR), dtype=np.uint8)
    return np.ascontiguousarray(blocky[..., ::-1])


def motion_blur(image: Image, rng: np.random.Generator, length_px: int = 25) -> Image:
    """A straight smear of random direction."""
    length = max(3, _scaled(length_px, max(image.shape[:2]), PAPER_WIDTH) | 1)
    angle = rng.uniform(0.0, math.pi)
    kernel = np.zeros((length, length), np.float32)
    middle = length // 2
    reach = np.array([math.cos(angle), math.sin(angle)]) * middle
    start, end = np.rint(middle - reach).astype(int), np.rint(middle + reach).astype(int)
    cv2.line(kernel, tuple(start.tolist()), tuple(end.tolist()), 1.0)
    return np.asarray(cv2.filter2D(image, -1, kernel / kernel.sum()), dtype=np.uint8)


def dark(image: Image, rng: np.random.Generator, factor: float = 0.3) -> Image:
    return np.asarray(np.rint(image * np.float32(factor)), dtype=np.uint8)


def salt_pepper(image: Image, rng: np.random.Generator, share: float = 0.05) -> Image:
    draw_HW = rng.random(image.shape[:2], dtype=np.float32)
    spotted: Image = image.copy()
    spotted[draw_HW < share / 2] = 0
    spotted[draw_HW > 1 - share / 2] = 255
    return spotted


@dataclass(frozen=True)
class Perturbation:
    """A row of a report. Rows of one family differ by their level and make a curve."""

    name: str
    title: str
    apply: Apply
    family: str
    level: float | None = None
    random: bool = True
    """False: every run gives the same pixels, so one is enough"""


def _then(*steps: Apply) -> Apply:
    def both(image: Image, rng: np.random.Generator) -> Image:
        for step in steps:
            image = step(image, rng)
        return image

    return both


def _noise(level: int) -> Perturbation:
    apply = partial(gaussian, sigma_255=level)
    return Perturbation(f"gaussian_{level}", f"Gaussian noise {level}/255", apply, "gaussian", level)


def _single(name: str, title: str, apply: Apply, *, random: bool = True) -> Perturbation:
    return Perturbation(name, title, apply, name, random=random)


_ALL = (
    *(_noise(level) for level in (10, 30, 40, 60)),
    _single("occlusion", "occlusion", occlusion),
    _single(
        "occlusion+gaussian_40", "occlusion + noise 40/255", _then(occlusion, partial(gaussian, sigma_255=40))
    ),
    _single("down_up", "down-up sampling by 3", down_up, random=False),
    _single("down_up+occlusion", "down-up + occlusion", _then(down_up, occlusion)),
    _single("stripes", "stripes", stripes),
    _single("down_up+stripes", "down-up + stripes", _then(down_up, stripes)),
    _single("salt_pepper", "salt and pepper", salt_pepper),
    _single("jpeg", "JPEG quality 10", jpeg, random=False),
    _single("motion_blur", "motion blur", motion_blur),
    _single("dark", "30 % of the light", dark, random=False),
)
PERTURBATIONS: dict[str, Perturbation] = {perturbation.name: perturbation for perturbation in _ALL}


def perturbation(name: str) -> Perturbation:
    try:
        return PERTURBATIONS[name]
    except KeyError:
        raise ConfigError(
            "no such perturbation",
            got=name,
            expected=", ".join(PERTURBATIONS),
            fix=suggestion(name, PERTURBATIONS),
        ) from None


def perturb(images_NHWC: Images, name: str, seed: int, run: int, first: int = 0) -> Images:
    """New images; the i-th one's generator depends on (seed, name, run, first + i) alone."""
    apply = perturbation(name).apply
    key = (seed, zlib.crc32(name.encode()), run)
    perturbed_NHWC = np.empty_like(images_NHWC)
    for position, image in enumerate(images_NHWC):
        perturbed_NHWC[position] = apply(image, np.random.default_rng((*key, first + position)))
    return perturbed_NHWC


def _scaled(length_px: int, size: int, paper_size: int) -> int:
    return max(1, round(length_px * size / paper_size))
