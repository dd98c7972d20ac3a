"""One frame to evidence: checks, preprocess, predict, add up to states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from edge_road.clock import SystemClock
from edge_road.conditions import STATES
from edge_road.frames import Frame
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.quality import QualitySettings, Seen, check, look_at
from edge_road.runtime.vehicle import Region


class Perception:
    def __init__(
        self,
        predictor: Predictor,
        preprocessing: Preprocessing,
        regions: Sequence[Region] = (),
        quality: QualitySettings | None = None,
    ) -> None:
        self._predictor, self._preprocessing = predictor, preprocessing
        self._regions = tuple(regions) or (Region(name="road", crop=preprocessing.crop),)
        self._quality = quality or QualitySettings()
        self._seen = Seen()

    def judge(self, frame: Frame) -> Evidence:
        stages = _Stages()
        with stages.timed("check"):
            look = look_at(frame, self._quality)
            self._seen, problems = check(self._seen, look, self._quality)
        regions = () if problems else self._judge_regions(frame, stages)
        return Evidence(
            number=frame.number,
            captured_mono_ns=frame.captured_mono_ns,
            captured_utc=frame.captured_utc,
            regions=regions,
            problems=problems,
            stage_ms=stages.milliseconds,
        )

    def _judge_regions(self, frame: Frame, stages: _Stages) -> tuple[RegionEvidence, ...]:
        with stages.timed("prepare"):
            crops = (region.crop for region in self._regions)
            images_NHWC = np.stack([self._preprocessing.prepare(frame.pixels, crop) for crop in crops])
        with stages.timed("predict"):
            prediction = self._predictor.predict(images_NHWC)
        states_NS = self._predictor.classes.state_probabilities(prediction.probabilities_NC)
        states_NS[~prediction.finite_N] = np.nan  # finite probabilities of a sick model do not count
        assert states_NS.shape == (len(self._regions), len(STATES))
        return tuple(
            RegionEvidence(name=region.name, probabilities=tuple(states_S))
            for region, states_S in zip(self._regions, states_NS.tolist())
        )


class _Stages:
    """How long each step took, in the machine's time."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self.milliseconds: dict[str, float] = {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began_ns = self._clock.mono_ns()
        yield
        self.milliseconds[name] = round((self._clock.mono_ns() - began_ns) / 1e6, 3)
