"""Sky, hills and the light that comes from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edge_road.synthetic import tiles
from edge_road.synthetic.camera import View
from edge_road.synthetic.colours import Colour, Field, brighter, clamped, planar


@dataclass(frozen=True)
class Sky:
    zenith: Colour
    horizon: Colour
    clouds: float
    glow: float
    """brightness around the place of the sun; 0 when it is behind"""
    sun_x: float
    """place of the sun in picture widths from the middle"""
    hills: tuple[float, ...]
    """amplitudes of the skyline's waves, in shares of the picture's height"""
    hill_tint: Colour
    light: Colour
    """colour and strength of the light on things"""
    shadows: float
    """how dark the shadow of a tree is"""
    haze: float
    """share of a thing's colour lost to the air per 100 m"""
    headlights: float
    place: float


def paint_sky(sky: Sky, view: View) -> Field:
    """The rows above and around the horizon (rows x width x 3)."""
    rows = np.arange(view.lowest_sky_row, dtype=np.float32)[:, None] + 0.5
    elevation = clamped(1 - rows / view.horizon_px)
    low, high = planar(sky.horizon), planar(sky.zenith)
    upper_CHW = np.repeat(low + (high - low) * elevation**0.7, view.width, axis=2)
    _add_clouds(upper_CHW, sky, elevation)
    if sky.glow:
        _add_glow(upper_CHW, sky, view)
    if sky.hills:
        _add_hills(upper_CHW, sky, view)
    return np.ascontiguousarray(upper_CHW.transpose(1, 2, 0))


def _add_clouds(upper_CHW: Field, sky: Sky, elevation: Field) -> None:
    x = np.linspace(-0.5, 0.5, upper_CHW.shape[2], dtype=np.float32)[None, :]
    distance = 0.28 / (elevation + 0.18)
    y = np.broadcast_to(distance + (sky.place % 1), upper_CHW.shape[1:])
    puffs = tiles.noise(51, 1 / 2, 1 / 40).at(x * distance * 1.2 + sky.place, y)
    amount = clamped(puffs * 0.5 + sky.clouds - 0.3)
    amount *= clamped(elevation * 5) * 0.75
    upper_CHW += amount * (planar(brighter(sky.horizon, 1.05)) - upper_CHW)


def _add_glow(upper_CHW: Field, sky: Sky, view: View) -> None:
    x = np.linspace(-0.5, 0.5, view.width, dtype=np.float32)[None, :] - sky.sun_x
    y = (np.arange(upper_CHW.shape[1], dtype=np.float32)[:, None] - (view.horizon_px * 0.72)) / view.width
    near = np.exp(-(x * x + y * y) * 22)
    upper_CHW += near * planar(brighter((1.0, 0.85, 0.6), sky.glow))


def _add_hills(upper_CHW: Field, sky: Sky, view: View) -> None:
    x = np.linspace(0, 1, view.width, dtype=np.float32)
    waves = [
        amplitude * (1 + np.sin((2.1 * k + 2.3) * x * 2 + sky.place * (k + 1)))
        for k, amplitude in enumerate(sky.hills)
    ]
    skyline_px = (view.horizon_px - np.sum(waves, axis=0) * view.height).astype(np.float32)
    top = max(int(skyline_px.min()) - 1, 0)
    rows = np.arange(top, upper_CHW.shape[1], dtype=np.float32)[:, None]
    mask = clamped(rows - skyline_px[None, :] + 1)
    tint = 0.55 * planar(sky.hill_tint) * planar(sky.light) + 0.45 * planar(sky.horizon)
    upper_CHW[:, top:] += mask * (tint - upper_CHW[:, top:])


_CLEAR = ((0.32, 0.52, 0.86), (0.78, 0.86, 0.95), (1.08, 1.02, 0.94))
_OVERCAST = ((0.66, 0.69, 0.74), (0.88, 0.90, 0.92), (0.84, 0.87, 0.90))
_DULL = ((0.44, 0.47, 0.52), (0.62, 0.64, 0.67), (0.60, 0.62, 0.66))
_SUNSET = ((0.26, 0.30, 0.48), (0.92, 0.62, 0.42), (0.66, 0.54, 0.46))
_DUSK = ((0.14, 0.17, 0.30), (0.42, 0.44, 0.54), (0.36, 0.38, 0.46))
_KINDS = (_CLEAR, _OVERCAST, _DULL, _SUNSET, _DUSK)
_KIND_SHARES = (0.34, 0.32, 0.16, 0.11, 0.07)
_HILL_TINTS: tuple[Colour, ...] = (
    (0.22, 0.30, 0.18),
    (0.35, 0.33, 0.28),
    (0.28, 0.32, 0.36),
    (0.75, 0.78, 0.82),
)


def random_sky(rng: np.random.Generator) -> Sky:
    kind = rng.choice(len(_KINDS), p=_KIND_SHARES)
    zenith, horizon, light = (brighter(colour, rng.uniform(0.88, 1.1)) for colour in _KINDS[kind])
    sunny, late = kind == 0, kind >= 3
    return Sky(
        zenith=zenith,
        horizon=horizon,
        clouds=rng.uniform(0, 0.6),
        glow=rng.uniform(0.2, 0.6) if kind in (0, 3) and rng.random() < 0.45 else 0.0,
        sun_x=rng.uniform(-0.5, 0.5),
        hills=tuple(rng.uniform(0, 0.045, size=rng.integers(0, 4))),
        hill_tint=_HILL_TINTS[rng.integers(len(_HILL_TINTS))],
        light=light,
        shadows=rng.uniform(0.2, 0.4) if sunny and rng.random() < 0.4 else 0.0,
        haze=rng.uniform(0.05, 0.4) if rng.random() < 0.88 else rng.uniform(0.4, 0.8),
        headlights=rng.uniform(0.05, 0.25) if late else 0.0,
        place=rng.uniform(0, 100),
    )
