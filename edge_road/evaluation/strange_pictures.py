"""Pictures that show no road: a covered lens, a page, the sky, a room, a road that makes no sense.

Each kind is a function of (a road picture, generator) and gives a new one of the same shape; those
that are drawn take only its size.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import cv2
import numpy as np

from edge_road.errors import ConfigError, suggestion
from edge_road.frames import Image, Images

Draw = Callable[[Image, np.random.Generator], Image]
PATCHES_A_SIDE = 4


def black(image: Image, generator: np.random.Generator) -> Image:
    """A covered lens: darkness and a little sensor noise."""
    return _pixels(generator.normal(generator.uniform(0, 6), 2.0, image.shape))


def white(image: Image, generator: np.random.Generator) -> Image:
    return _pixels(generator.normal(generator.uniform(249, 256), 2.0, image.shape))


def noise(image: Image, generator: np.random.Generator) -> Image:
    """Every value equally likely: a broken cable."""
    return generator.integers(0, 256, image.shape, dtype=np.uint8)


def text_page(image: Image, generator: np.random.Generator) -> Image:
    """Dark words in rows on light paper."""
    height, width = image.shape[:2]
    page = np.full(image.shape, generator.integers(225, 256, 3), np.float64)
    row = max(3, round(height / generator.integers(14, 26)))
    for top in range(row, height - row, row):
        left = round(0.08 * width)
        while left < generator.uniform(0.7, 0.92) * width:
            word = max(2, round(row * generator.uniform(0.8, 4.0)))
            strokes = generator.uniform(20, 110, (max(1, row // 2), min(word, width - left)))
            page[top : top + len(strokes), left : left + word] = strokes[..., None]
            left += word + max(1, row // 2)
    return _pixels(page)


def sky(image: Image, generator: np.random.Generator) -> Image:
    """A gradient from blue to haze with soft clouds."""
    height, width = image.shape[:2]
    top, bottom = np.array([70, 120, 200]), np.array([185, 205, 230])
    ramp_H = np.linspace(0, 1, height)[:, None, None]
    clouds = np.clip(_smooth(generator, (height, width), 6) * generator.uniform(0.8, 2.0), 0, 1)[..., None]
    blue = (1 - ramp_H) * (top + generator.normal(0, 15, 3)) + ramp_H * bottom
    return _pixels((1 - clouds) * blue + clouds * 245)


def indoor(image: Image, generator: np.random.Generator) -> Image:
    """Wallpaper over a floor of planks or tiles, under a lamp."""
    height, width = image.shape[:2]
    rows, columns = np.mgrid[:height, :width]
    horizon = round(height * generator.uniform(0.4, 0.7))
    wall = generator.uniform(120, 215) + generator.normal(0, 14, 3)
    floor = generator.uniform(0.4, 1.1) * np.array([150, 110, 75]) + generator.normal(0, 10, 3)
    pitch = max(4, width // int(generator.integers(5, 14)))
    paper = 12 * np.sin(2 * np.pi * columns / pitch) * np.sin(2 * np.pi * rows / pitch)
    joints = ((columns + rows // 2) % pitch < 2) | (rows % pitch < 2 * generator.integers(0, 2))
    boards = np.where(joints, -40.0, 10 * _smooth(generator, (height, width), 12))
    upper = (rows < horizon)[..., None]
    room = np.where(upper, wall + paper[..., None], floor + boards[..., None])
    lamp = np.hypot(rows - generator.uniform(0, horizon), columns - generator.uniform(0, width))
    return _pixels(room + 60 * np.exp(-lamp / width * 3)[..., None])


def upside_down(image: Image, generator: np.random.Generator) -> Image:
    """The road above, the sky below: a camera that fell from its mount."""
    return np.ascontiguousarray(image[::-1, ::-1])


def shuffled(image: Image, generator: np.random.Generator) -> Image:
    """Sixteen patches of a road in a random order: its texture without its shape."""
    rows = np.array_split(np.arange(image.shape[0]), PATCHES_A_SIDE)
    columns = np.array_split(np.arange(image.shape[1]), PATCHES_A_SIDE)
    patches = [image[np.ix_(r, c)] for r in rows for c in columns]
    mixed = np.empty_like(image)
    order = generator.permutation(len(patches))
    for position, (r, c) in enumerate((r, c) for r in rows for c in columns):
        patch = patches[order[position]]
        mixed[np.ix_(r, c)] = (
            patch if patch.shape[:2] == (len(r), len(c)) else cv2.resize(patch, (len(c), len(r)))
        )
    return mixed


STRANGE: dict[str, Draw] = {
    draw.__name__: draw for draw in (black, white, noise, text_page, sky, indoor, upside_down, shuffled)
}


def strange_pictures(images_NHWC: Images, kind: str, seed: int) -> Images:
    """One for each road picture; the i-th depends on (seed, kind, i) and the i-th picture alone."""
    if kind not in STRANGE:
        fix = suggestion(kind, STRANGE)
        raise ConfigError("no such kind of picture", got=kind, expected=", ".join(STRANGE), fix=fix)
    key = (seed, zlib.crc32(kind.encode()))
    drawn = [STRANGE[kind](image, np.random.default_rng((*key, i))) for i, image in enumerate(images_NHWC)]
    return np.stack(drawn) if drawn else np.empty_like(images_NHWC)


def _smooth(generator: np.random.Generator, size: tuple[int, int], cells: int) -> np.ndarray:
    """Noise with about `cells` bumps a side."""
    coarse = generator.normal(0, 1, (cells, cells))
    return np.asarray(cv2.resize(coarse, size[::-1], interpolation=cv2.INTER_CUBIC), np.float64)


def _pixels(values: np.ndarray) -> Image:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)
