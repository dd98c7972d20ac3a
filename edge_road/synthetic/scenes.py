"""Pictures of a road as a dash camera sees them, in a known state.

A picture is a `Style` (camera, pavement, sky, roadside, lens) with a `Cover` on the ground. The style
is drawn without regard to the state, so that only the ground tells the state.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from edge_road.frames import Image
from edge_road.synthetic import surfaces, tiles
from edge_road.synthetic.camera import Camera, Ground, View, random_camera
from edge_road.synthetic.colours import Field, clamped, packed, planar
from edge_road.synthetic.cover import Cover, random_cover
from edge_road.synthetic.lens import Lens, photograph, random_lens
from edge_road.synthetic.pavement import (
    Pavement,
    paint_road,
    paint_verge,
    random_pavement,
    road_mask,
    soil_texture,
    wheel_tracks,
)
from edge_road.synthetic.roadside import random_scenery
from edge_road.synthetic.scenery import Layer, Scenery, paint_scenery
from edge_road.synthetic.sky import Sky, paint_sky, random_sky
from edge_road.synthetic.surfaces import Site


@dataclass(frozen=True)
class Style:
    camera: Camera
    pavement: Pavement
    sky: Sky
    scenery: Scenery
    lens: Lens
    bonnet: float
    """share of the picture's height that the vehicle's own bonnet hides"""


def random_style(rng: np.random.Generator) -> Style:
    pavement = random_pavement(rng)
    sky = random_sky(rng)
    return Style(
        camera=random_camera(rng, pavement.lane_m),
        pavement=pavement,
        sky=sky,
        scenery=random_scenery(rng, pavement, sky),
        lens=random_lens(rng),
        bonnet=rng.uniform(0.04, 0.1) if rng.random() < 0.25 else 0.0,
    )


def random_bend(rng: np.random.Generator) -> float:
    """Curvature of a road in 1/m; 0.004 is a radius of 250 m."""
    return float(np.clip(rng.normal(0, 0.0018), -0.004, 0.004))


def render_scene(state: str, rng: np.random.Generator, height: int = 192, width: int = 256) -> Image:
    """One picture of a road that is dry, wet or icy; equal generators give equal pixels."""
    cover = random_cover(state, rng)
    style = random_style(rng)
    view = View(style.camera, height, width, random_bend(rng))
    light = draw(style, view, view.ground(), cover, travel_m=rng.uniform(0, 500))
    return photograph(style.lens, light, rng)


def draw(style: Style, view: View, ground: Ground, cover: Cover, travel_m: float) -> Field:
    """The light that reaches the lens (rows x width x 3) from a place on the road."""
    sky = paint_sky(style.sky, view)
    things = _overlay(paint_scenery(style.scenery, view, style.sky, travel_m))
    world = sky.copy()
    things.lay_over(world)
    picture = np.empty((view.height, view.width, 3), dtype=np.float32)
    picture[ground.top :] = _draw_ground(style, view, ground, cover, travel_m, world)
    picture[: ground.top] = sky[: ground.top]
    _soften_horizon(picture, sky, ground)
    things.lay_over(picture)
    return _with_bonnet(picture, style.bonnet, style.sky) if style.bonnet else picture


@dataclass(frozen=True, eq=False)
class _Overlay:
    """Premultiplied colour and the share of the background that stays visible, from row `top` on."""

    top: int
    colour: Field
    kept: Field

    def lay_over(self, picture: Field) -> None:
        rows = picture[self.top : self.top + len(self.kept)]
        rows *= self.kept[: len(rows)]
        rows += self.colour[: len(rows)]


def _overlay(layer: Layer) -> _Overlay:
    busy = np.flatnonzero(layer[..., 3].any(axis=1))
    rows = slice(busy[0], busy[-1] + 1) if busy.size else slice(0, 0)
    shares = layer[rows].astype(np.float32) * (1 / 255)
    hidden = shares[..., [3, 3, 3]]
    return _Overlay(rows.start, shares[..., :3], 1 - hidden)


def _soften_horizon(picture: Field, sky: Field, ground: Ground) -> None:
    rows = slice(ground.top, len(sky))
    above = 1 - ground.coverage[: len(sky) - ground.top, :, None]
    picture[rows] += above * (sky[rows] - picture[rows])


def _draw_ground(
    style: Style, view: View, ground: Ground, cover: Cover, travel_m: float, world: Field
) -> Field:
    soil = soil_texture(style.pavement, ground, travel_m)
    site = _site(style.pavement, ground, travel_m, soil)
    verge_CHW = paint_verge(style.pavement, soil)
    road_CHW = paint_road(style.pavement, ground, travel_m, site.tracks)
    colour_CHW = surfaces.soaked(verge_CHW + site.road * (road_CHW - verge_CHW), cover, site)
    bare = np.ones_like(site.road)
    if np.any(cover.snow) or np.any(cover.verge_snow):
        snow = surfaces.snow_mask(cover, site)
        colour_CHW, bare = surfaces.snowed(colour_CHW, cover, site, snow), 1 - snow
    colour_CHW *= _light(style, site)
    if np.any(cover.water):
        mirrors = [_mirror(world, view, ground, streak) for streak in (0.015, 0.16)]
        colour_CHW = surfaces.mirrored(colour_CHW, cover, site, bare, *mirrors)
    if np.any(cover.glaze):
        colour_CHW = surfaces.glazed(colour_CHW, cover, site, _mirror(world, view, ground, 0.16))
    return _through_air(colour_CHW, style.sky, site, cover)


def _site(pavement: Pavement, ground: Ground, travel_m: float, soil: Field) -> Site:
    edge = np.clip(np.abs(ground.across_m) / pavement.half_width_m, 0, 1.2)
    return Site(
        ground=ground,
        travel_m=travel_m,
        place=pavement.place,
        tracks=wheel_tracks(pavement, ground),
        road=road_mask(pavement, ground, soil),
        edge=edge * edge,
        soil=soil,
    )


def _light(style: Style, site: Site) -> Field:
    sky = style.sky
    light_CHW = planar(sky.light)
    if sky.shadows:
        crowns = site.texture(tiles.noise(71, 1 / 3, 1 / 20), 40.0, 0.6)
        shade = clamped(crowns * 2 - 0.9) * sky.shadows
        light_CHW = light_CHW * (1 - shade)
    if sky.headlights:
        beside = (site.ground.across_m - style.camera.across_m) * 0.3
        beam = np.exp(-beside * beside - site.ground.ahead_m * 0.06) * sky.headlights
        light_CHW = light_CHW + planar((1.0, 0.93, 0.8)) * beam
    return light_CHW


def _mirror(world: Field, view: View, ground: Ground, streak: float) -> Field:
    """The world upside down on the ground's rows, drawn out as on a rough film (3 x rows x width)."""
    length = max(int(streak * view.height), 1)
    upper = world[: int(view.horizon_px)]
    drawn_out = cv2.blur(upper, (max(length // 8, 1), length), borderType=cv2.BORDER_REPLICATE)
    rows = 2 * int(view.horizon_px) - np.arange(ground.top, view.height)
    flipped = drawn_out[np.clip(rows, 0, len(upper) - 1)]
    return np.ascontiguousarray(flipped.transpose(2, 0, 1))


def _through_air(colour_CHW: Field, sky: Sky, site: Site, cover: Cover) -> Field:
    """Distance takes colour; spray hangs white over a wet road. Returns rows x width x 3."""
    clear = np.exp(site.ground.ahead_m * (-sky.haze / 100))
    if np.any(cover.spray):
        mist = site.texture(tiles.noise(72, 1 / 3, 1 / 12), 30.0, 3.0)
        thick = clamped(0.5 + 0.35 * mist) * site.tracks * cover.spray
        clear = clear * (1 - 0.6 * thick * clamped(site.ground.ahead_m / 30))
    air_CHW = planar(sky.horizon)
    return np.ascontiguousarray((air_CHW + clear * (colour_CHW - air_CHW)).transpose(1, 2, 0))


def _with_bonnet(picture: Field, share: float, sky: Sky) -> Field:
    height, width = picture.shape[:2]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    edge_px = height * (1 - share * (1 - 0.45 * x * x))
    first = int(height * (1 - share))
    mask = clamped(np.arange(first, height, dtype=np.float32)[:, None] - edge_px)[..., None]
    paint = packed(sky.light) * 0.09
    picture[first:] += mask * (paint - picture[first:])
    return picture
