"""What stands beside the road: trees, houses, guard rails, lamps, and the vehicle in front.

Everything is drawn on one layer of premultiplied colour and opacity (uint8, rows x width x 4), far
things first, so that the layer can be laid over the ground and can be seen in wet ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_road.synthetic import sprites
from edge_road.synthetic.camera import Points, View
from edge_road.synthetic.colours import Colour, Field, brighter
from edge_road.synthetic.sky import Sky

Layer = npt.NDArray[np.uint8]
Quad = list[tuple[float, float, float]]  # corners: across, up, ahead

LOOP_M = 130.0  # the roadside repeats after this distance
_NEAREST_M = 4.0
_SHIFT = 4  # cv2 draws with 1/16 pixel, so that things glide instead of hopping
_FARTHEST_PX = 1 << 20
_RGBA = tuple[float, float, float, float]
_STEEL: Colour = (0.33, 0.34, 0.36)
_GLASS: Colour = (0.14, 0.17, 0.22)
_TYRES: Colour = (0.05, 0.05, 0.06)
_LAMPLIGHT: Colour = (1.0, 0.87, 0.58)


@dataclass(frozen=True)
class Tree:
    across_m: float
    along_m: float
    height_m: float
    kind: str
    number: int
    tint: Colour


@dataclass(frozen=True)
class House:
    across_m: float
    along_m: float
    length_m: float
    height_m: float
    tint: Colour
    lit: bool


@dataclass(frozen=True)
class Lamp:
    across_m: float
    along_m: float
    lit: bool


@dataclass(frozen=True)
class LeadCar:
    across_m: float
    ahead_m: float
    tint: Colour
    lights: float


Thing = Tree | House | Lamp


@dataclass(frozen=True)
class Scenery:
    things: tuple[Thing, ...]
    rails_m: tuple[float, ...]
    """place of each guard rail across the road"""
    car: LeadCar | None


class Painter:
    """Draws in road coordinates on one layer, with the light and the air of a sky."""

    def __init__(self, view: View, sky: Sky) -> None:
        self.view = view
        self.sky = sky
        self.layer: Layer = np.zeros((view.height, view.width, 4), dtype=np.uint8)

    def _air(self, ahead_m: float) -> float:
        return 1 - math.exp(-self.sky.haze * ahead_m / 100)

    def colour(self, tint: Colour, ahead_m: float, own_light: float = 0.0) -> _RGBA:
        """What is seen of a tint at a distance; `own_light` is for lamps, which shine by themselves."""
        air = self._air(ahead_m) * (1 - own_light)
        red, green, blue = (
            min(255 * (albedo * (light + (1 - light) * own_light) * (1 - air) + far * air), 255.0)
            for albedo, light, far in zip(tint, self.sky.light, self.sky.horizon)
        )
        return (red, green, blue, 255.0)

    def quads(self, corners_N43: npt.ArrayLike, colour: _RGBA) -> None:
        """Fill rectangles of the world, each given by its corners (across, up, ahead) in metres."""
        corners_M3 = np.asarray(corners_N43, dtype=np.float64).reshape(-1, 3)
        self.polygons(self.view.pixels(corners_M3).reshape(-1, 4, 2), colour)

    def polygons(self, outlines_NK2: Points, colour: _RGBA) -> None:
        fixed_point = np.clip(np.round(outlines_NK2 * (1 << _SHIFT)), -_FARTHEST_PX, _FARTHEST_PX)
        cv2.fillPoly(self.layer, list(fixed_point.astype(np.int32)), colour, cv2.LINE_AA, _SHIFT)

    def sprite(self, picture: Field, foot: tuple[float, float], height_px: float, colour: _RGBA) -> None:
        """Lay a tinted drawing over the layer, its foot at a pixel."""
        tall = max(round(height_px), 2)
        wide = max(round(height_px * picture.shape[1] / picture.shape[0]), 2)
        left, top = round(foot[0] - wide / 2), round(foot[1]) - tall
        rows = slice(max(top, 0), min(top + tall, self.view.height))
        columns = slice(max(left, 0), min(left + wide, self.view.width))
        if rows.start >= rows.stop or columns.start >= columns.stop or tall > 3 * self.view.height:
            return
        scaled = cv2.resize(picture, (wide, tall), interpolation=cv2.INTER_LINEAR)
        part = scaled[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
        shade, opacity = part[..., 0], part[..., 1]
        red, green, blue, _ = colour
        ink = cv2.merge([shade * red, shade * green, shade * blue, opacity * 255])
        window = self.layer[rows, columns]
        kept = cv2.merge([1 - opacity] * 4)
        window[...] = np.minimum(ink + window * kept, 255)


def paint_scenery(scenery: Scenery, view: View, sky: Sky, travel_m: float) -> Layer:
    painter = Painter(view, sky)
    for across_m in scenery.rails_m:
        _paint_rail(painter, across_m, travel_m)
    placed = [(_ahead_m(thing, travel_m), thing) for thing in scenery.things]
    for ahead_m, thing in sorted(placed, key=lambda pair: -pair[0]):
        _paint_thing(painter, thing, ahead_m)
    if scenery.car is not None:
        _paint_car(painter, scenery.car)
    return painter.layer


def _ahead_m(thing: Thing, travel_m: float) -> float:
    """Distance to the near end; a house may begin behind the camera and still be in view."""
    length_m = thing.length_m if isinstance(thing, House) else 0.0
    return (thing.along_m - travel_m + length_m) % LOOP_M - length_m + _NEAREST_M


def _paint_thing(painter: Painter, thing: Thing, ahead_m: float) -> None:
    if isinstance(thing, Tree):
        x, y = painter.view.pixels([(thing.across_m, 0, ahead_m)])[0]
        tall_px = thing.height_m * painter.view.pixels_per_m(ahead_m)
        colour = painter.colour(brighter(thing.tint, 2), ahead_m)
        painter.sprite(sprites.tree(thing.kind, thing.number), (x, y), tall_px, colour)
    elif isinstance(thing, House):
        _paint_house(painter, thing, ahead_m)
    else:
        _paint_lamp(painter, thing, ahead_m)


def _facing(left_m: float, right_m: float, low_m: float, high_m: float, ahead_m: float) -> Quad:
    """An upright rectangle that faces the camera."""
    return [
        (left_m, low_m, ahead_m),
        (left_m, high_m, ahead_m),
        (right_m, high_m, ahead_m),
        (right_m, low_m, ahead_m),
    ]


def _lengthwise(across_m: float, low_m: float, high_m: float, near_m: float, far_m: float) -> Quad:
    """An upright rectangle along the road."""
    return [
        (across_m, low_m, near_m),
        (across_m, high_m, near_m),
        (across_m, high_m, far_m),
        (across_m, low_m, far_m),
    ]


def _paint_house(painter: Painter, house: House, begin_m: float) -> None:
    far_m, near_m = begin_m + house.length_m, max(begin_m, _NEAREST_M)
    outer_m = house.across_m + math.copysign(10, house.across_m)
    front = _facing(house.across_m, outer_m, 0, house.height_m, near_m)
    painter.quads([front], painter.colour(brighter(house.tint, 0.8), near_m))
    side = _lengthwise(house.across_m, 0, house.height_m, near_m, far_m)
    painter.quads([side], painter.colour(house.tint, near_m))
    windows = [
        _lengthwise(house.across_m, floor_m, floor_m + 1.5, left_m, left_m + 1.3)
        for floor_m in np.arange(1.0, house.height_m - 1.8, 3.0)
        for left_m in np.arange(begin_m + 1.0, far_m - 1.5, 3.5)
        if left_m > near_m
    ]
    shine = 0.8 if house.lit else 0.0
    painter.quads(windows, painter.colour(_LAMPLIGHT if house.lit else _GLASS, near_m, shine))


def _paint_lamp(painter: Painter, lamp: Lamp, ahead_m: float) -> None:
    head_m = lamp.across_m - math.copysign(1.6, lamp.across_m)
    post = _facing(lamp.across_m - 0.07, lamp.across_m + 0.07, 0, 7, ahead_m)
    arm = _facing(lamp.across_m, head_m, 6.9, 7.05, ahead_m)
    painter.quads([post], painter.colour(_STEEL, ahead_m))
    painter.quads([arm], painter.colour(_STEEL, ahead_m))
    if lamp.lit:
        bulb = _facing(head_m - 0.45, head_m + 0.45, 6.6, 7.1, ahead_m)
        painter.quads([bulb], painter.colour(_LAMPLIGHT, ahead_m, 1.0))


def _paint_rail(painter: Painter, across_m: float, travel_m: float) -> None:
    """One band that follows the bend of the road, on posts every 4 m."""
    posts_m = np.arange(8.0 - travel_m % 4.0, 40.0, 4.0)
    posts = [_facing(across_m - 0.05, across_m + 0.05, 0, 0.6, ahead_m) for ahead_m in posts_m]
    painter.quads(posts, painter.colour(_STEEL, 10.0))
    ahead_m = np.geomspace(2.5, 90.0, 14)
    edges = [np.stack([np.full(14, across_m), np.full(14, up_m), ahead_m], axis=1) for up_m in (0.42, 0.74)]
    outline = painter.view.pixels(np.concatenate([edges[0], edges[1][::-1]]))
    painter.polygons(outline[None], painter.colour((0.62, 0.64, 0.66), 15.0))


def _paint_car(painter: Painter, car: LeadCar) -> None:
    def part(half_width_m: float, low_m: float, high_m: float, tint: Colour) -> None:
        quad = _facing(car.across_m - half_width_m, car.across_m + half_width_m, low_m, high_m, car.ahead_m)
        painter.quads([quad], painter.colour(tint, car.ahead_m))

    part(0.9, 0.0, 0.4, _TYRES)
    part(0.9, 0.3, 0.95, car.tint)
    part(0.75, 0.95, 1.45, car.tint)
    part(0.65, 1.0, 1.36, _GLASS)
    places_m = (car.across_m - 0.75, car.across_m + 0.75)
    lights = [_facing(place_m - 0.13, place_m + 0.13, 0.68, 0.86, car.ahead_m) for place_m in places_m]
    red = (0.55 + 0.45 * car.lights, 0.08, 0.06)
    painter.quads(lights, painter.colour(red, car.ahead_m, car.lights))
