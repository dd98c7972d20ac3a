"""A camera that tells its size and its rate only once it is open."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from edge_road.clock import SystemClock
from edge_road.frames import Frame, Image
from edge_road.runtime import preview, worker
from edge_road.runtime.evidence import Ended, Evidence, Ready
from edge_road.runtime.link import AnyReport, Setup, SupervisorEnd, WorkerEnd
from edge_road.runtime.recorder import Step
from edge_road.runtime.replay import Replay
from edge_road.runtime.sources.base import EndOfStream
from edge_road.runtime.spawning import socket_pair
from edge_road.runtime.vehicle import Vehicle, WorkerLimits


class SlowCamera:
    """Five pictures a second, as it says when it has been opened."""

    live, rejected, origin_ns = True, 0, 0
    description, period_s = "camera", 1 / 30

    def __init__(self, told: threading.Event) -> None:
        self._told = told

    def open(self) -> None:
        assert self._told.wait(5)
        self.description, self.period_s = "camera, 64 x 48", 0.2

    def read(self, deadline_ns: int) -> Frame:
        threading.Event().wait(0.3)
        raise EndOfStream

    def close(self) -> None:
        pass


def reports_of_a_worker(
    monkeypatch: pytest.MonkeyPatch,
    camera: Callable[[threading.Event], object] = SlowCamera,
    on_evidence: Callable[[], None] = lambda: None,
) -> list[AnyReport]:
    told = threading.Event()
    monkeypatch.setattr(worker, "source_for", lambda *_: camera(told))
    ours, theirs = socket_pair()
    theirs.setblocking(False)
    with ours, theirs:
        end, reports = SupervisorEnd(ours), list[AnyReport]()
        setup = Setup(vehicle=Vehicle(backend="fake", worker=WorkerLimits(stall_s=60)))
        working = threading.Thread(target=worker.work, args=(WorkerEnd(theirs), setup), daemon=True)
        working.start()
        while not any(isinstance(report, Ended) for report in reports):
            reports += end.receive() or []
            if reports:
                told.set()
            if any(isinstance(report, Evidence) for report in reports):
                on_evidence()
            threading.Event().wait(0.01)
        working.join(5)
    return reports


def test_its_rate_is_told_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = [report for report in reports_of_a_worker(monkeypatch) if isinstance(report, Ready)]
    assert [(r.source, round(r.period_s, 3), r.first) for r in ready] == [
        ("camera", 0.033, True),
        ("camera, 64 x 48", 0.2, False),
    ]


class OneFrame(SlowCamera):
    live, description, period_s = False, "camera", 0.1

    def open(self) -> None:
        self._frames = iter([Frame(np.zeros((48, 64, 3), np.uint8), 1, SystemClock().mono_ns())])

    def read(self, deadline_ns: int) -> Frame:
        for frame in self._frames:
            return frame
        raise EndOfStream


def test_a_slow_picture_for_the_page_delays_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is shown for as long as its evidence has not come: were it shown first, for ever."""
    judged, in_time = threading.Event(), list[bool]()

    class SlowPreview:
        def __init__(self, vehicle: Vehicle) -> None: ...

        def show(self, image: Image) -> None:
            in_time.append(judged.wait(3))

    monkeypatch.setattr(preview, "Preview", SlowPreview)
    reports_of_a_worker(monkeypatch, OneFrame, on_evidence=judged.set)
    assert in_time == [True]


class DamagedEnd(OneFrame):
    """Two pictures after the last whole one cannot be decoded."""

    def read(self, deadline_ns: int) -> Frame:
        for frame in self._frames:
            return frame
        self.rejected = 2
        raise EndOfStream


def test_pictures_that_are_damaged_after_the_last_whole_one_are_counted_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports = reports_of_a_worker(monkeypatch, DamagedEnd)
    (ended,) = (report for report in reports if isinstance(report, Ended))
    assert ended.rejected == 2


def test_in_a_replay_too_its_dropped_frames_count_once() -> None:
    common = {"predictor": "fake", "model_digest": "m", "confidence_threshold": 0.6, "origin_mono_ns": 0}
    seen = {"kind": "evidence", "number": 1, "problems": ["noise"]}
    steps = [
        {"report": {"kind": "ready", "source": "camera", "period_s": 0.03, **common}},
        {"mono_ns": 1, "report": {**seen, "captured_mono_ns": 1, "dropped": 3}},
        {"report": {"kind": "ready", "source": "camera", "period_s": 0.2, "first": False, **common}},
        {"mono_ns": 2, "report": {**seen, "captured_mono_ns": 2, "dropped": 4}},
        {"mono_ns": 2, "say": True},
    ]
    drive = Replay(Vehicle(backend="fake"))
    told = [drive.step(Step.model_validate(step)) for step in steps]
    assert told[-1] is not None
    assert told[-1].dropped == 4
