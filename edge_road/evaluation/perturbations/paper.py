"""The perturbations of robust_discriminative_noise, section 7 (Tables 3 and 4), and a few more of that kind.

The paper gives them for pictures of 400 x 500: sizes scale with the picture, and masks are black.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.frames import Image

PAPER_HEIGHT, PAPER_WIDTH = 400, 500


def gaussian(image: Image, rng: np.random.Generator, sigma_255: float) -> Image:
    """Noise of one standard deviation for all values, clipped as a camera saturates."""
    draws = np.frombuffer(rng.bytes(2 * image.size), dtype="<u2").reshape(image.shape)
    noisy = _noise_steps(sigma_255)[draws]
    noisy += image
    return np.asarray(np.clip(noisy, 0, 255, out=noisy), dtype=np.uint8)


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


@lru_cache(maxsize=16)
def _noise_steps(sigma_255: float) -> npt.NDArray[np.int16]:
    """Noise in whole steps for every 16-bit draw: many times faster than drawing normal numbers."""
    return np.rint(sigma_255 * _normal_quantiles()).astype(np.int16)


@lru_cache(maxsize=1)
def _normal_quantiles() -> npt.NDArray[np.float64]:
    normal = NormalDist()
    upper = [normal.inv_cdf((step + 0.5) / 65536) for step in range(32768, 65536)]
    return np.array([-value for value in reversed(upper)] + upper)


def _scaled(length_px: int, size: int, paper_size: int) -> int:
    return max(1, round(length_px * size / paper_size))
