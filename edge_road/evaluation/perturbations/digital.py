"""What processing does to a picture: the five digital common corruptions, and video coding.

Common corruptions: Hendrycks and Dietterich (2019); brightness belongs to their weather.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cv2
import numpy as np

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations.pixels import Field, light, pixels, sampled, smooth, zoomed
from edge_road.frames import Image

_ELASTIC_SMOOTHNESS = 0.01  # of the picture's side
_ELASTIC_REACH = 0.005  # of the picture's height, times the strength
_VIDEO_GROWTH = 1.02  # of the picture from frame to frame, as on a straight road


def brightness(image: Image, rng: np.random.Generator, added: float) -> Image:
    """More of the V in HSV; hue and saturation stay."""
    field = light(image)
    value_HW1 = field.max(axis=2, keepdims=True)
    raised_HW1 = np.minimum(value_HW1 + added, 1.0)
    black_HW1 = value_HW1 == 0
    return pixels(np.where(black_HW1, raised_HW1, field * (raised_HW1 / np.where(black_HW1, 1.0, value_HW1))))


def contrast(image: Image, rng: np.random.Generator, kept: float) -> Image:
    """Every value moves towards its channel's mean."""
    means_C = image.sum(axis=(0, 1), dtype=np.int64) / (image.shape[0] * image.shape[1])
    return pixels((means_C + kept * (image - means_C)) / 255)


def elastic_transform(image: Image, rng: np.random.Generator, strength: float) -> Image:
    height, width = image.shape[:2]
    reach = _ELASTIC_REACH * height * strength
    rows_HW, columns_HW = np.indices((height, width)).astype(np.float64)
    down_HW, along_HW = (_smooth_draw(rng, reach, (height, width)) for _ in range(2))
    return pixels(sampled(light(image), rows_HW + down_HW, columns_HW + along_HW))


def pixelate(image: Image, rng: np.random.Generator, kept: float) -> Image:
    """Fewer, larger pixels: `kept` of them along each side."""
    height, width = image.shape[:2]
    small_height, small_width = max(1, int(height * kept)), max(1, int(width * kept))
    small = cv2.resize(light(image), (small_width, small_height), interpolation=cv2.INTER_AREA)
    rows = (2 * np.arange(height) + 1) * small_height // (2 * height)
    columns = (2 * np.arange(width) + 1) * small_width // (2 * width)
    return pixels(small[rows[:, None], columns])


def h264(image: Image, rng: np.random.Generator, rate_factor: int) -> Image:
    """The third frame of a short drive, encoded by x264 at a constant rate factor and decoded again."""
    import av

    height, width = image.shape[:2]
    even = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    if "libx264" not in av.codecs_available:
        raise ConfigError("this PyAV has no x264 encoder", fix="pip install av, or leave h264 out")
    encoder = av.CodecContext.create("libx264", "w")
    encoder.height, encoder.width = even.shape[:2]
    encoder.pix_fmt, encoder.time_base = "yuv420p", Fraction(1, 30)
    encoder.options = {"crf": str(rate_factor), "preset": "veryfast", "tune": "zerolatency", "threads": "1"}
    packets = [packet for frame in _approach(even) for packet in encoder.encode(_video_frame(frame))]
    decoder = av.CodecContext.create("h264", "r")
    frames = [frame for packet in [*packets, *encoder.encode(None)] for frame in decoder.decode(packet)]
    last = [*frames, *decoder.decode(None)][-1]
    return np.asarray(last.to_ndarray(format="rgb24"), dtype=np.uint8)[:height, :width]


def _approach(image: Image) -> list[Image]:
    """Two earlier frames, in which everything is a little smaller, and the picture itself."""
    field = light(image)
    return [*(pixels(zoomed(field, _VIDEO_GROWTH**-steps, (0.45, 0.5))) for steps in (2, 1)), image]


def _video_frame(image: Image) -> Any:
    import av

    return av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24").reformat(format="yuv420p")


def _smooth_draw(rng: np.random.Generator, reach: float, shape: tuple[int, int]) -> Field:
    sigma_px = max(0.5, _ELASTIC_SMOOTHNESS * max(shape))
    return smooth(rng.uniform(-reach, reach, shape), sigma_px, cv2.BORDER_REFLECT, reach=3.0)
