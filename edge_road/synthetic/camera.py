"""Where a pixel looks: the geometry between a dash camera and a flat, bending road.

Road coordinates are metres: `across` from the road's middle to the right, `ahead` from the camera.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_road.errors import DataError
from edge_road.synthetic.colours import Field, clamped

Points = npt.NDArray[np.float64]

FARTHEST_M = 400.0
SMALLEST_PX = 16


@dataclass(frozen=True)
class Camera:
    height_m: float
    horizon: float
    """share of the picture's height above the horizon; negative when it looks down"""
    focal: float
    """focal length in picture widths"""
    across_m: float = 0.0
    """place of the camera on the road"""
    yaw: float = 0.0
    """sideways shift of the vanishing point in focal lengths"""
    roll: float = 0.0
    """slope of the horizon"""


@dataclass(frozen=True, eq=False)
class Ground:
    """What the rows of a picture from `top` on see of the ground (all arrays rows x width)."""

    top: int
    across_m: Field
    ahead_m: Field
    pixel_across_m: Field
    pixel_ahead_m: Field
    coverage: Field
    """0 above the horizon, 1 below, a soft edge between"""
    steepness: Field
    """cosine between the line of sight and the vertical: near 0 at the horizon"""


@dataclass(frozen=True)
class View:
    """A camera with a picture size and the bend of the road in 1/m."""

    camera: Camera
    height: int
    width: int
    bend_per_m: float = 0.0

    def __post_init__(self) -> None:
        if min(self.height, self.width) < SMALLEST_PX:
            raise DataError(
                "too small for a picture of a road",
                got=f"{self.height} x {self.width}",
                expected=f"{SMALLEST_PX} x {SMALLEST_PX} or larger",
            )

    @property
    def focal_px(self) -> float:
        return self.camera.focal * self.width

    @property
    def horizon_px(self) -> float:
        return self.camera.horizon * self.height

    @property
    def highest_ground_row(self) -> int:
        slope = abs(self.camera.roll) * self.width / 2
        return int(np.clip(np.floor(self.horizon_px - slope) - 1, 0, self.height - 1))

    @property
    def lowest_sky_row(self) -> int:
        """The first row that shows ground only."""
        slope = abs(self.camera.roll) * self.width / 2
        return int(np.clip(np.ceil(self.horizon_px + slope) + 1, 0, self.height))

    def ground(self) -> Ground:
        camera, top = self.camera, self.highest_ground_row
        x = np.arange(self.width, dtype=np.float32)[None, :] + (0.5 - self.width / 2)
        y = np.arange(top, self.height, dtype=np.float32)[:, None] + 0.5
        below_px = y - self.horizon_px - camera.roll * x
        reach = camera.height_m * self.focal_px
        ahead = reach / np.maximum(below_px, reach / FARTHEST_M)
        sideways = ahead * (x / self.focal_px - camera.yaw)
        across = sideways + camera.across_m - (self.bend_per_m / 2) * ahead * ahead
        return Ground(
            top=top,
            across_m=across,
            ahead_m=ahead,
            pixel_across_m=ahead / self.focal_px,
            pixel_ahead_m=ahead * ahead / reach,
            coverage=clamped(below_px + 0.5),
            steepness=camera.height_m / np.sqrt(ahead * ahead + camera.height_m**2),
        )

    def pixels(self, points_N3: npt.ArrayLike) -> Points:
        """Where points (across, up, ahead) of the world lie in the picture; N x (x, y)."""
        across_m, up_m, ahead_m = np.asarray(points_N3, dtype=np.float64).T
        camera, scale = self.camera, self.focal_px / ahead_m
        sideways_m = across_m - camera.across_m + self.bend_per_m / 2 * ahead_m**2
        x = sideways_m * scale + camera.yaw * self.focal_px
        y = self.horizon_px + camera.roll * x + (camera.height_m - up_m) * scale
        return np.stack([x + self.width / 2, y], axis=1)

    def pixels_per_m(self, ahead_m: float) -> float:
        return self.focal_px / ahead_m


def strip(across_m: Field, left_m: float, right_m: float, pixel_m: Field) -> Field:
    """Share of each pixel inside a lengthwise strip: 1 inside, soft at the edges, thin when far."""
    inside = np.minimum(across_m - left_m, right_m - across_m) / pixel_m
    widest = np.minimum((right_m - left_m) / pixel_m, 1)
    return clamped(inside + 0.5, 0, widest)


def random_camera(rng: np.random.Generator, lane_m: float) -> Camera:
    return Camera(
        height_m=rng.uniform(1.15, 1.75),
        horizon=rng.uniform(0.3, 0.47),
        focal=rng.uniform(0.65, 1.0),
        across_m=lane_m / 2 + rng.normal(0, 0.3),
        yaw=rng.normal(0, 0.03),
        roll=rng.normal(0, 0.008),
    )
