"""What rendered pictures are made of: fields with a value a pixel, and colours from 0 to 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.floating]  # float32 in fact, but a type checker sees float64 after `* 0.5`
Colour = tuple[float, float, float]


def clamped(field: Field, low: float = 0.0, high: Field | float = 1.0) -> Field:
    return np.asarray(np.clip(field, low, high))


def packed(colour: Colour) -> Field:
    """To be mixed into rows x width x 3."""
    return np.array(colour, dtype=np.float32)


def planar(colour: Colour) -> Field:
    """To be mixed into 3 x rows x width."""
    return packed(colour)[:, None, None]


def brighter(colour: Colour, factor: float) -> Colour:
    red, green, blue = colour
    return (red * factor, green * factor, blue * factor)


def varied(colour: Colour, rng: np.random.Generator) -> Colour:
    """A little lighter or darker, and of a slightly other hue."""
    red, green, blue = (channel * rng.uniform(0.94, 1.06) for channel in colour)
    return brighter((red, green, blue), rng.uniform(0.85, 1.15))
