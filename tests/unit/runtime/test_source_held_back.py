from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from edge_road.clock import ScriptedClock
from edge_road.frames import Frame
from edge_road.runtime.sources.base import Intact, Lag, RisingTimes, Unreadable
from edge_road.runtime.sources.rtsp import RtspCamera
from edge_road.runtime.vehicle_sources import RtspSource

PIXELS = np.zeros((16, 16, 3), np.uint8)


def opened(fps: float = 20.0) -> tuple[RtspCamera, ScriptedClock]:
    clock = ScriptedClock(10**9)
    camera = RtspCamera(RtspSource(kind="rtsp", url="rtsp://camera/x", fps=fps), clock)
    camera._times, camera._intact, camera._lag = RisingTimes(), Intact(), Lag()
    camera._last, camera._colours = None, SimpleNamespace(reformat=lambda picture, format: picture)
    return camera, clock


def picture(pts: int, is_corrupt: bool = False, key_frame: bool = False) -> SimpleNamespace:
    """Twenty a second, by the camera's own clock."""
    return SimpleNamespace(
        pts=pts,
        time=pts / 20,
        is_corrupt=is_corrupt,
        key_frame=key_frame,
        width=16,
        height=16,
        to_ndarray=lambda: PIXELS,
    )


def test_the_first_picture_after_a_pause_may_be_an_old_one_and_is_not_judged() -> None:
    """The library hands out what it held back when the camera falls silent."""
    camera, clock = opened()
    assert isinstance(camera._frame(picture(1)), Frame)
    clock.sleep(0.05)
    assert isinstance(camera._frame(picture(2)), Frame)
    clock.sleep(0.5)
    assert camera._frame(picture(3)) is None
    clock.sleep(0.05)
    assert isinstance(camera._frame(picture(4)), Frame)
    assert camera.rejected == 1


def test_a_slow_camera_is_not_silent() -> None:
    camera, clock = opened(fps=1.0)
    for number in range(5):
        assert isinstance(camera._frame(picture(number)), Frame)
        clock.sleep(1.0)


def test_a_camera_slower_than_it_says_is_judged_and_its_silence_is_still_noticed() -> None:
    """It announces 20 pictures a second and sends 2: its time stamps are as far apart as its pictures."""
    camera, clock = opened()
    for number in range(0, 50, 10):
        clock.sleep(0.5)
        assert isinstance(camera._frame(picture(number)), Frame)
    clock.sleep(2.0)
    assert camera._frame(picture(50)) is None
    clock.sleep(0.01)
    assert isinstance(camera._frame(picture(89)), Frame)
    assert camera.rejected == 1


def test_after_damage_it_waits_for_a_key_picture() -> None:
    camera, clock = opened()
    camera._frame(picture(1))
    seen = []
    for number, options in enumerate(({"is_corrupt": True}, {}, {}, {"key_frame": True}, {}), start=2):
        clock.sleep(0.05)
        seen.append(type(camera._frame(picture(number, **options))))
    assert seen == [Unreadable, Unreadable, Unreadable, Frame, Frame]


def test_pictures_that_waited_in_a_buffer_are_as_old_as_they_are() -> None:
    """A second of pictures comes at once, then the camera is live again."""
    camera, clock = opened()
    ages_s = []
    for number in range(60):
        if not 20 <= number < 40:
            clock.sleep(0.05)
        elif number == 20:
            clock.sleep(1.0)  # this one is dropped, the nineteen after it come in one moment
        frame = camera._frame(picture(number))
        if isinstance(frame, Frame):
            ages_s.append((clock.mono_ns() - frame.captured_mono_ns) / 1e9)
    assert max(ages_s[:20]) < 0.01
    assert ages_s[20] > 0.85
    assert max(ages_s[40:]) < 0.06


def test_clocks_that_drift_apart_make_nothing_old() -> None:
    lag = Lag()
    behind_s = [lag.behind_s(second, second * (1 - 5e-5)) for second in range(86_400)]
    assert max(behind_s) < 0.001
    assert lag.behind_s(86_400.0, None) == 0.0
