"""One frame to evidence: checks, preprocess, predict, distance to what is known, add up to states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from edge_road.clock import SystemClock
from edge_road.conditions import STATES
from edge_road.frames import Frame, Images
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.geometry import Geometry
from edge_road.runtime.look import look_at
from edge_road.runtime.quality import QualitySettings, Seen, check
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.vehicle import Region
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs

STANDING_MPS = 1.0


class Perception:
    """Several regions are one batch; each keeps its own evidence, and the decision fuses them."""

    def __init__(
        self,
        predictor: Predictor,
        preprocessing: Preprocessing,
        regions: Sequence[Region] = (),
        quality: QualitySettings | None = None,
        geometry: Geometry | None = None,
    ) -> None:
        self._predictor, self._preprocessing, self._geometry = predictor, preprocessing, geometry
        self._regions = tuple(regions) or (Region(name="road", crop=preprocessing.crop),)
        self._crops = [region.crop for region in self._regions]
        self._quality = quality or QualitySettings()
        self._seen = Seen()
        self._images_NHWC: Images = np.empty((len(self._regions), *predictor.size, 3), np.uint8)
        self.rejected_by: Counter[str] = Counter()
        self.sick_in_a_row = 0
        """answers that are no numbers, since the last one that was"""

    def judge(self, picture: Frame | Unreadable, inputs: VehicleInputs = NO_INPUTS) -> Evidence:
        if isinstance(picture, Unreadable):
            return self._evidence(picture, (), (picture.problem,), {})
        stages = _Stages()
        with stages.timed("check"):
            speed_mps = inputs.speed_mps(picture.captured_mono_ns)
            standing = speed_mps is not None and speed_mps < STANDING_MPS
            look = look_at(picture, self._quality, self._crops)
            self._seen, verdict = check(self._seen, look, self._quality, standing)
        regions = () if verdict.problems else self._judge_regions(picture, verdict.obstructed, stages)
        return self._evidence(picture, regions, verdict.problems, stages.milliseconds)

    def _evidence(
        self,
        picture: Frame | Unreadable,
        regions: tuple[RegionEvidence, ...],
        problems: tuple[str, ...],
        stage_ms: dict[str, float],
    ) -> Evidence:
        self.rejected_by.update(problems)
        return Evidence(
            number=picture.number,
            captured_mono_ns=picture.captured_mono_ns,
            captured_utc=picture.captured_utc,
            regions=regions,
            problems=problems,
            stage_ms=stage_ms,
            rejected_by=dict(self.rejected_by),
        )

    def _judge_regions(
        self, frame: Frame, obstructed: tuple[bool, ...], stages: _Stages
    ) -> tuple[RegionEvidence, ...]:
        with stages.timed("prepare"):
            for number, crop in enumerate(self._crops):
                self._images_NHWC[number] = self._preprocessing.prepare(frame.pixels, crop)
        with stages.timed("predict"):
            prediction = self._predictor.predict(self._images_NHWC)
        states_NS = self._predictor.classes.state_probabilities(prediction.probabilities_NC)
        finite_N = prediction.finite_N
        states_NS[~finite_N] = np.nan  # finite probabilities of a sick model do not count
        self.sick_in_a_row = 0 if finite_N.all() else self.sick_in_a_row + 1
        assert states_NS.shape == (len(self._regions), len(STATES))
        known = self._geometry
        distances_N = [0.0] * len(states_NS) if known is None else known.distances_N(prediction.features_ND)
        return tuple(
            RegionEvidence(
                name=region.name, probabilities=tuple(states_S), distance=float(distance), obstructed=covered
            )
            for region, states_S, distance, covered in zip(
                self._regions, states_NS.tolist(), distances_N, obstructed
            )
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
