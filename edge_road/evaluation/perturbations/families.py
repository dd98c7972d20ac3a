"""Every perturbation by name: rows of a report, families in five severities, and dials of one figure.

`fog:3` is the family `fog` at severity 3; `gaussian:40` turns the dial `gaussian` to 40 of 255.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from edge_road.errors import ConfigError
from edge_road.evaluation.perturbations import blur, digital, illumination, noise, paper, weather, windscreen
from edge_road.frames import Image

Apply = Callable[[Image, np.random.Generator], Image]
Strength = tuple[float, ...]
SEVERITIES = (1, 2, 3, 4, 5)


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

    @property
    def stream(self) -> str:
        """Names its random draws: the severities of a family share them, and so differ in strength alone."""
        return self.name.partition(":")[0]


@dataclass(frozen=True)
class Family:
    """One kind of damage; `strengths` are what `apply` takes at severity 1 to 5."""

    name: str
    title: str
    apply: Callable[..., Image]
    strengths: tuple[Strength, Strength, Strength, Strength, Strength]
    random: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}:{severity}" for severity in SEVERITIES)

    def at(self, text: str) -> Perturbation:
        if text not in {"0", *map(str, SEVERITIES)}:
            raise ConfigError(
                "no such severity",
                got=f"{self.name}:{text}" if text else self.name,
                expected="1 to 5, or 0 for the picture as it is",
                fix=f"for example {self.name}:3",
            )
        name, severity = f"{self.name}:{text}", int(text)
        if severity == 0:
            return Perturbation(name, f"{self.title} 0", unchanged, self.name, 0, random=False)
        apply = _with(self.apply, self.strengths[severity - 1])
        return Perturbation(name, f"{self.title} {severity}", apply, self.name, severity, self.random)


@dataclass(frozen=True)
class Dial:
    """A perturbation with one physical parameter."""

    name: str
    title: str
    """with {} for the value"""
    apply: Callable[..., Image]
    parameter: str
    low: float
    high: float
    unit: float = 1.0
    """what 1 on the dial is to `apply`"""
    whole: bool = False
    random: bool = True

    def at(self, text: str) -> Perturbation:
        value = self._value(text)
        strength = value if self.whole else value * self.unit
        apply = partial(self.apply, **{self.parameter: strength})
        title = self.title.format(f"{value:g}")
        return Perturbation(f"{self.name}:{value:g}", title, apply, self.name, value, self.random)

    def _value(self, text: str) -> float:
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            value = float("nan")
        if not self.low <= value <= self.high:
            kind = "a whole number" if self.whole else "a number"
            raise ConfigError(
                "no such strength",
                got=f"{self.name}:{text}",
                expected=f"{kind} from {self.low:g} to {self.high:g}",
            )
        return value


def unchanged(image: Image, rng: np.random.Generator) -> Image:
    same: Image = image.copy()
    return same


def then(*steps: Apply) -> Apply:
    """A combination acts in the order of its name."""

    def both(image: Image, rng: np.random.Generator) -> Image:
        for step in steps:
            image = step(image, rng)
        return image

    return both


def _with(apply: Callable[..., Image], strength: Strength) -> Apply:
    def applied(image: Image, rng: np.random.Generator) -> Image:
        return apply(image, rng, *strength)

    return applied


def _each(*values: float) -> tuple[Strength, Strength, Strength, Strength, Strength]:
    first, second, third, fourth, fifth = values
    return (first,), (second,), (third,), (fourth,), (fifth,)


DIALS = {
    dial.name: dial
    for dial in (
        Dial("gaussian", "Gaussian noise {}/255", paper.gaussian, "sigma_255", 0, 255),
        Dial("uniform", "uniform noise {}/255", noise.uniform_noise, "reach_255", 0, 255),
        Dial("salt_pepper", "salt and pepper {} %", paper.salt_pepper, "share", 0, 100, unit=0.01),
        Dial("occlusion", "occlusion by {} patches", paper.occlusion, "patches", 0, 1000, whole=True),
        Dial("stripes", "{} stripes", paper.stripes, "count", 0, 1000, whole=True),
        Dial("down_up", "down-up sampling by {}", paper.down_up, "factor", 1, 32, random=False),
        Dial("jpeg", "JPEG quality {}", paper.jpeg, "quality", 1, 100, whole=True, random=False),
        Dial("dark", "{} % of the light", paper.dark, "factor", 0, 100, unit=0.01, random=False),
    )
}

# Strengths of Hendrycks and Dietterich (2019), for ImageNet; theirs of glass, snow, frost and fog do not
# always grow by PSNR from one severity to the next, so a few of those differ here.
COMMON = (
    Family("gaussian_noise", "Gaussian noise", noise.gaussian_noise, _each(0.08, 0.12, 0.18, 0.26, 0.38)),
    Family("shot_noise", "shot noise", noise.shot_noise, _each(60, 25, 12, 5, 3)),
    Family("impulse_noise", "impulse noise", noise.impulse_noise, _each(0.03, 0.06, 0.09, 0.17, 0.27)),
    Family("defocus_blur", "defocus blur", blur.defocus_blur, _each(3, 4, 6, 8, 10), random=False),
    Family(
        "glass_blur",
        "frosted glass blur",
        blur.glass_blur,
        ((0.7, 1, 2), (0.8, 2, 2), (0.8, 2.5, 3), (0.9, 3.5, 3), (1.0, 5, 3)),
    ),
    Family("motion_blur", "motion blur", blur.motion_blur, ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))),
    Family(
        "zoom_blur",
        "zoom blur",
        blur.zoom_blur,
        ((1.10, 0.01), (1.15, 0.01), (1.20, 0.02), (1.24, 0.02), (1.30, 0.03)),
        random=False,
    ),
    Family(
        "snow",
        "snow",
        weather.snow,
        (
            (0.1, 3, 0.5, 10, 4, 0.8),
            (0.2, 2, 0.5, 12, 4, 0.7),
            (0.55, 4, 0.88, 12, 8, 0.68),
            (0.55, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 2.5, 0.85, 12, 12, 0.55),
        ),
    ),
    Family("frost", "frost", weather.frost, ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.8), (0.6, 0.9))),
    Family("fog", "fog", weather.fog, ((1.5, 2), (2.0, 2), (2.5, 1.9), (3.0, 1.9), (4.0, 1.8))),
    Family("brightness", "brightness", digital.brightness, _each(0.1, 0.2, 0.3, 0.4, 0.5), random=False),
    Family("contrast", "contrast", digital.contrast, _each(0.4, 0.3, 0.2, 0.1, 0.05), random=False),
    Family(
        "elastic_transform", "elastic transform", digital.elastic_transform, _each(12.5, 16.25, 21.25, 25, 30)
    ),
    Family("pixelate", "pixelate", digital.pixelate, _each(0.6, 0.5, 0.4, 0.3, 0.25), random=False),
    Family("jpeg_compression", "JPEG compression", paper.jpeg, _each(25, 18, 15, 10, 7), random=False),
)
ROAD = (
    Family("spray", "spray", weather.spray, _each(0.2, 0.35, 0.5, 0.65, 0.85)),
    Family(
        "droplets", "drops on the lens", windscreen.droplets, ((8, 8), (14, 10), (22, 12), (34, 14), (50, 16))
    ),
    Family("driving_blur", "driving blur", blur.driving_blur, _each(0.05, 0.1, 0.18, 0.3, 0.45)),
    Family("low_sun", "low sun", illumination.low_sun, _each(0.25, 0.45, 0.7, 1.0, 1.4)),
    Family(
        "night",
        "night",
        noise.night,
        ((0.75, 400, 2), (0.6, 150, 2), (0.48, 70, 2), (0.38, 35, 2), (0.28, 16, 2)),
    ),
    Family(
        "dirt",
        "dirty windscreen",
        windscreen.dirt,
        ((0.08, 0.7), (0.16, 0.75), (0.27, 0.8), (0.4, 0.87), (0.55, 0.95)),
    ),
    Family(
        "wiper",
        "wiper",
        windscreen.wiper,
        ((0.04, 0.15), (0.07, 0.3), (0.1, 0.45), (0.14, 0.65), (0.2, 0.95)),
    ),
    Family("bands", "rolling bands", illumination.bands, _each(0.15, 0.3, 0.45, 0.6, 0.8)),
    Family("h264", "H.264", digital.h264, _each(30, 35, 40, 45, 50), random=False),
)
FAMILIES = {
    family.name: family
    for family in (
        *COMMON,
        *ROAD,
        Family("uniform_noise", "uniform noise", noise.uniform_noise, _each(20, 40, 60, 90, 130)),
    )
}
