"""A camera, a model and a worker that fail when a rehearsal says so."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace

import numpy as np

from edge_road.clock import Clock, SystemClock
from edge_road.conditions import ClassList
from edge_road.errors import CameraError
from edge_road.frames import Frame, Images, Prediction
from edge_road.predictor import Predictor
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.rehearsal import Rehearsal
from edge_road.runtime.sources.base import Source, Unreadable

log = logging.getLogger(__name__)

SLOW_S = 0.5
FOR_EVER_S = 3600.0


class FaultyCamera:
    """A real source behind a fault."""

    def __init__(self, source: Source, rehearsal: Rehearsal, machine: Clock | None = None) -> None:
        self._source, self._rehearsal = source, rehearsal
        self._machine = machine or SystemClock()
        self._held: Frame | None = None
        self.live = source.live
        self._damaged = 0

    @property
    def description(self) -> str:
        return f"{self._source.description} (rehearsal)"

    @property
    def period_s(self) -> float:
        return self._source.period_s

    @property
    def origin_ns(self) -> int:
        return self._source.origin_ns

    @property
    def rejected(self) -> int:
        return self._source.rejected + self._damaged

    def open(self) -> None:
        if self._fault() == "error":
            raise self._gone()
        self._source.open()

    def close(self) -> None:
        self._source.close()

    def read(self, deadline_ns: int) -> Frame | Unreadable | None:
        fault = self._fault()
        if fault == "error":
            raise self._gone()
        while fault == "hang" and self._fault() == "hang":
            self._machine.sleep(0.05)  # past every deadline, like a driver that is stuck
        picture = self._source.read(deadline_ns)
        if fault != "freeze":
            self._held = None
        if fault is None or not isinstance(picture, Frame):
            return picture
        return self._spoilt(picture, fault)

    def _spoilt(self, frame: Frame, fault: str) -> Frame | Unreadable | None:
        if fault == "silence":
            return None
        if fault == "decode":
            self._damaged += 1
            return Unreadable(frame.number, frame.captured_mono_ns, frame.captured_utc)
        if fault == "freeze":
            self._held = self._held or frame
            return replace(frame, pixels=self._held.pixels)
        if fault == "noise":
            noise = np.random.default_rng(frame.number).integers(0, 256, frame.pixels.shape)
            return replace(frame, pixels=noise.astype(np.uint8))
        return replace(frame, pixels=np.full_like(frame.pixels, 255 if fault == "white" else 0))

    def _fault(self) -> str | None:
        return self._rehearsal.first_active("camera", self._machine.mono_ns())

    def _gone(self) -> CameraError:
        return CameraError("the camera is gone", where=self.description, got="an injected fault")


class FaultyPredictor:
    def __init__(self, predictor: Predictor, rehearsal: Rehearsal, machine: Clock | None = None) -> None:
        self._predictor, self._rehearsal = predictor, rehearsal
        self._machine = machine or SystemClock()

    @property
    def name(self) -> str:
        return f"{self._predictor.name} (rehearsal)"

    @property
    def classes(self) -> ClassList:
        return self._predictor.classes

    @property
    def size(self) -> tuple[int, int]:
        return self._predictor.size

    def predict(self, images_NHWC: Images) -> Prediction:
        fault = self._rehearsal.first_active("model", self._machine.mono_ns())
        answer = self._predictor.predict(images_NHWC)
        if fault == "slow":
            self._machine.sleep(SLOW_S)
        if fault == "nan":
            nothing = np.full_like(answer.probabilities_NC, np.nan)
            return replace(answer, probabilities_NC=nothing, logits_NC=nothing)
        return answer


def faulty_model(model: LoadedModel, rehearsal: Rehearsal) -> LoadedModel:
    return replace(model, predictor=FaultyPredictor(model.predictor, rehearsal))


def strike(rehearsal: Rehearsal, machine: Clock) -> None:
    """End or hang the worker, if its time has come; who hangs is killed."""
    fault = rehearsal.first_active("worker", machine.mono_ns())
    if fault is None:
        return
    log.error("injected fault: worker.%s", fault)
    sys.stderr.flush()
    if fault == "crash":
        os._exit(1)
    machine.sleep(FOR_EVER_S)
