"""Minutes of consistent frames from one moving camera, with the state of the road known at any time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edge_road.conditions import STATES
from edge_road.errors import DataError
from edge_road.frames import Image
from edge_road.synthetic.camera import Ground, View
from edge_road.synthetic.colours import clamped
from edge_road.synthetic.cover import Cover, blended, random_cover
from edge_road.synthetic.lens import photograph
from edge_road.synthetic.scenes import Style, draw, random_bend, random_style
from edge_road.synthetic.segments import Segment, begins

__all__ = ["Drive", "Segment", "random_drive"]

# Streams of random numbers, so that no part of a drive disturbs another.
_STYLE, _COVER, _NOISE, _PLAN = range(4)
# A change rolls in from this far ahead, and each spot fades within this time.
_SEEN_AHEAD_M = 12.0
_FADE_S = 0.25
_CHANGE_WINDOW_S = 0.6  # the slowest drive: 6 m at 14 m/s, and half of the fade


@dataclass(frozen=True)
class Drive:
    seed: int
    segments: tuple[Segment, ...]
    fps: float = 20.0
    height: int = 192
    width: int = 256

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        if self.seed < 0 or not self.fps > 0 or self.frames < 1:
            raise DataError(
                "a drive needs a seed of 0 or more, a frame rate above 0 and at least one frame",
                got=f"seed {self.seed}, {self.fps} frames/s, {self.duration_s} s",
            )
        self._view_at(0.0)  # refuses impossible sizes now, not at the first frame

    @property
    def duration_s(self) -> float:
        return self._begins_s[-1]

    @property
    def frames(self) -> int:
        return round(self.duration_s * self.fps)

    def state_at(self, seconds: float) -> str:
        """The state of the road under the camera."""
        if not 0 <= seconds <= self.duration_s:
            raise DataError("outside the drive", got=f"{seconds} s", expected=f"0 to {self.duration_s} s")
        return self.segments[self._segment_at(seconds)].state

    def frame(self, number: int) -> Image:
        """Frames may be asked for in any order; the same number always gives the same pixels."""
        if not 0 <= number < self.frames:
            raise DataError("no such frame in this drive", got=number, expected=f"0 to {self.frames - 1}")
        seconds = number / self.fps
        travel_m = self._road.start_m + self._road.speed_mps * seconds
        view = self._view_at(travel_m)
        ground = view.ground()
        light = draw(self._road.style, view, ground, self._cover_at(seconds, ground), travel_m)
        return photograph(self._road.style.lens, light, np.random.default_rng((self.seed, _NOISE, number)))

    def _view_at(self, travel_m: float) -> View:
        return View(self._road.style.camera, self.height, self.width, self._road.bend_at(travel_m))

    @cached_property
    def _begins_s(self) -> list[float]:
        return begins(self.segments)

    @cached_property
    def _road(self) -> _Road:
        return _random_road(np.random.default_rng((self.seed, _STYLE)))

    @cached_property
    def _covers(self) -> list[Cover]:
        return [
            random_cover(segment.state, np.random.default_rng((self.seed, _COVER, number)))
            for number, segment in enumerate(self.segments)
        ]

    def _segment_at(self, seconds: float) -> int:
        return min(bisect_right(self._begins_s, seconds), len(self.segments)) - 1

    def _cover_at(self, seconds: float, ground: Ground) -> Cover:
        """One cover, or several that roll towards the camera while the road changes."""
        first = self._segment_at(max(seconds - _CHANGE_WINDOW_S, 0.0))
        last = self._segment_at(min(seconds + _CHANGE_WINDOW_S, self.duration_s))
        cover = self._covers[first]
        for number in range(first + 1, last + 1):
            until_s = self._begins_s[number] - seconds
            # Measured from half the distance, so that half of the picture has changed on time.
            lead_m = np.minimum(ground.ahead_m, _SEEN_AHEAD_M) - (_SEEN_AHEAD_M / 2)
            lead_s = lead_m * (1 / self._road.speed_mps)
            share = clamped((lead_s - until_s) * (1 / _FADE_S) + 0.5)
            cover = blended(cover, self._covers[number], share)
        return cover


@dataclass(frozen=True)
class _Road:
    style: Style
    speed_mps: float
    start_m: float
    bend_per_m: float
    bend_length_m: float

    def bend_at(self, travel_m: float) -> float:
        return self.bend_per_m * float(np.sin(travel_m * 2 * np.pi / self.bend_length_m))


def _random_road(rng: np.random.Generator) -> _Road:
    return _Road(
        style=random_style(rng),
        speed_mps=rng.uniform(14.0, 25.0),
        start_m=rng.uniform(0, 500),
        bend_per_m=random_bend(rng),
        bend_length_m=rng.uniform(500, 1200),
    )


def random_drive(
    seed: int,
    duration_s: float,
    fps: float = 20.0,
    height: int = 192,
    width: int = 256,
    shortest_s: float = 6.0,
    usual_s: float = 10.0,
) -> Drive:
    """A drive with a change of state about every `usual_s`; every state comes up where time allows."""
    if not 0 < shortest_s <= usual_s:
        raise DataError("segments need 0 < shortest_s <= usual_s", got=f"{shortest_s} and {usual_s}")
    rng = np.random.default_rng((seed, _PLAN))
    count = max(round(duration_s / usual_s), min(int(duration_s // shortest_s), len(STATES)), 1)
    shares = rng.uniform(0.2, 1.0, count)
    spare_s = max(duration_s - count * shortest_s, 0.0)
    lengths_s = (duration_s - spare_s) / count + spare_s * shares / shares.sum()
    states = _random_states(count, rng)
    return Drive(seed, tuple(map(Segment, states, lengths_s.tolist())), fps, height, width)


def _random_states(count: int, rng: np.random.Generator) -> list[str]:
    """All three in random order first, then any that differs from the one before."""
    states = [STATES[i] for i in rng.permutation(len(STATES))]
    while len(states) < count:
        states.append(str(rng.choice([state for state in STATES if state != states[-1]])))
    return states[:count]
