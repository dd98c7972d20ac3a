from __future__ import annotations

import threading

import numpy as np

from edge_road.frames import Frame
from edge_road.runtime.slot import NewestFrameSlot


def frame(number: int) -> Frame:
    return Frame(np.zeros((4, 4, 3), np.uint8), number, number)


def test_the_newest_frame_wins_and_drops_are_counted() -> None:
    slot = NewestFrameSlot()
    for number in range(5):
        slot.put(frame(number))
    taken = slot.take(timeout_s=0)
    assert taken is not None
    assert taken.number == 4
    assert slot.dropped == 4


def test_a_frame_is_taken_once() -> None:
    slot = NewestFrameSlot()
    slot.put(frame(1))
    assert slot.take(timeout_s=0) is not None
    assert slot.take(timeout_s=0) is None
    assert slot.dropped == 0


def test_taking_waits_for_a_frame_of_another_thread() -> None:
    slot = NewestFrameSlot()
    threading.Timer(0.05, slot.put, [frame(7)]).start()
    taken = slot.take(timeout_s=5)
    assert taken is not None
    assert taken.number == 7
