"""The capture thread on scripted cameras."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from edge_road.clock import SystemClock
from edge_road.errors import CameraError
from edge_road.frames import Frame
from edge_road.runtime.capture import Capture
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.sources.base import EndOfStream, Unreadable

Step = Callable[[], Frame | None]


def frame(number: int, captured_ns: int | None = None) -> Frame:
    at_ns = SystemClock().mono_ns() if captured_ns is None else captured_ns
    return Frame(np.zeros((4, 4, 3), np.uint8), number, at_ns)


class ScriptedCamera:
    """Plays one step per read, then gives nothing more."""

    description, period_s, origin_ns, rejected, live = "scripted", 0.1, 0, 0, False

    def __init__(self, *steps: Step, refuse_opens: int = 0) -> None:
        self._steps: Iterator[Step] = iter(steps)
        self._refuse = refuse_opens
        self.opened = self.closed = 0
        self.done = threading.Event()

    def open(self) -> None:
        self.opened += 1
        if self.opened > 1 and self._refuse:
            self._refuse -= 1
            raise CameraError("still away")

    def read(self, deadline_ns: int) -> Frame | None:
        step = next(self._steps, None)
        if step is None:
            self.done.set()
            SystemClock().sleep(0.01)
            return None
        return step()

    def close(self) -> None:
        self.closed += 1


def lost() -> Frame | None:
    raise CameraError("unplugged")


def ends() -> Frame | None:
    raise EndOfStream


def breaks() -> Frame | None:
    raise RuntimeError("a bug of ours")


@pytest.fixture
def slot() -> NewestFrameSlot:
    return NewestFrameSlot()


def capture_of(camera: ScriptedCamera, slot: NewestFrameSlot, rate: float = 30.0) -> Capture:
    return Capture(camera, slot.put, SystemClock(), rate=rate, longest_pause_s=0.3)


def test_frames_reach_the_slot(slot: NewestFrameSlot) -> None:
    camera = ScriptedCamera(lambda: frame(1))
    capture = capture_of(camera, slot)
    capture.start()
    taken = slot.take(timeout_s=5)
    capture.stop(timeout_s=5)
    assert taken is not None
    assert taken.number == 1
    assert camera.closed == 1


def test_a_lost_camera_is_opened_again_until_it_is_back(slot: NewestFrameSlot) -> None:
    camera = ScriptedCamera(lost, lambda: frame(2), refuse_opens=2)
    capture = capture_of(camera, slot)
    capture.start()
    taken = slot.take(timeout_s=10)
    capture.stop(timeout_s=5)
    assert taken is not None
    assert camera.opened == 4


def test_a_camera_that_cannot_be_opened_at_first_is_the_callers_trouble(slot: NewestFrameSlot) -> None:
    class NoCamera(ScriptedCamera):
        def open(self) -> None:
            raise CameraError("no such camera")

    with pytest.raises(CameraError, match="no such camera"):
        capture_of(NoCamera(), slot).start()


def test_a_live_camera_is_waited_for_from_the_start(
    slot: NewestFrameSlot, caplog: pytest.LogCaptureFixture
) -> None:
    class LateCamera(ScriptedCamera):
        live = True

        def open(self) -> None:
            self.opened += 1
            if self.opened < 3:
                raise CameraError("the camera cannot be opened")

    camera = LateCamera(lambda: frame(1))
    capture = capture_of(camera, slot)
    capture.start()
    taken = slot.take(timeout_s=10)
    capture.stop(timeout_s=5)
    assert taken is not None
    assert camera.opened == 3
    assert not capture.opening
    said = ["the camera is waited for: the camera cannot be opened", "the camera is there: scripted"]
    assert caplog.messages == said, "the same trouble is told once, and in one way"


def test_what_cannot_be_decoded_reaches_the_slot_whatever_the_rate(slot: NewestFrameSlot) -> None:
    camera = ScriptedCamera(*[lambda n=n: Unreadable(n, n) for n in range(3)])  # type: ignore[misc]
    capture = capture_of(camera, slot, rate=0.1)
    capture.start()
    camera.done.wait(10)
    capture.stop(timeout_s=5)
    assert (slot.frames, slot.dropped) == (3, 2)
    assert slot.take(timeout_s=0) == Unreadable(2, 2)


def test_the_end_of_the_stream_is_told(slot: NewestFrameSlot) -> None:
    capture = capture_of(ScriptedCamera(ends), slot)
    capture.start()
    capture.stop(timeout_s=5)
    assert capture.ended
    assert capture.bug is None


def test_a_bug_of_ours_is_kept_for_the_worker(slot: NewestFrameSlot) -> None:
    capture = capture_of(ScriptedCamera(breaks), slot)
    capture.start()
    capture.stop(timeout_s=5)
    assert str(capture.bug) == "a bug of ours"


def test_a_call_that_does_not_return_is_seen_from_outside(slot: NewestFrameSlot) -> None:
    inside, release = threading.Event(), threading.Event()

    def hang() -> Frame | None:
        inside.set()
        release.wait(10)
        return None

    camera = ScriptedCamera(hang)
    capture = capture_of(camera, slot)
    capture.start()
    inside.wait(10)
    SystemClock().sleep(0.05)
    assert capture.stuck_s() >= 0.05
    release.set()
    camera.done.wait(10)
    capture.stop(timeout_s=5)
    assert capture.stuck_s() == 0.0


def test_a_preparation_that_does_not_return_is_seen_too() -> None:
    inside, release = threading.Event(), threading.Event()

    def prepare(picture: Frame | Unreadable) -> None:
        inside.set()
        release.wait(10)

    camera = ScriptedCamera(lambda: frame(1))
    capture = Capture(camera, prepare, SystemClock(), rate=30.0, longest_pause_s=0.3)
    capture.start()
    inside.wait(10)
    SystemClock().sleep(0.05)
    assert capture.stuck_s() >= 0.05
    release.set()
    capture.stop(timeout_s=5)


@pytest.mark.parametrize(
    ("camera_fps", "rate", "expected"), [(30, 30, 300), (60, 30, 300), (25, 20, 200), (5, 30, 50)]
)
def test_a_fast_camera_is_thinned_to_the_rate_without_counting_drops(
    camera_fps: int, rate: int, expected: int, slot: NewestFrameSlot
) -> None:
    capture = capture_of(ScriptedCamera(), slot, rate=rate)
    jitter_ns = np.random.default_rng(0).integers(-2_000_000, 2_000_000, 10 * camera_fps)
    times_ns = [10**9 + round(n / camera_fps * 1e9) + int(j) for n, j in enumerate(jitter_ns)]
    kept = sum(capture._is_due(frame(n, at_ns)) for n, at_ns in enumerate(times_ns))
    assert kept == pytest.approx(expected, rel=0.03)
