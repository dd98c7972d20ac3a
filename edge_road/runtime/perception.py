"""One frame to evidence: checks, preprocess, predict, distance to what is known, add up to states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from edge_road.clock import SystemClock
from edge_road.conditions import STATES
from edge_road.frames import Frame, Images, Prediction
from edge_road.predictor import Predictor
from edge_road.preprocess import Preprocessing
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.geometry import Geometry
from edge_road.runtime.look import look_at
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.quality import QualitySettings, Seen, Verdict, check
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.vehicle import Region, Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS, STANDING_MPS, VehicleInputs


@dataclass(frozen=True)
class View:
    """A picture on its way to the model."""

    picture: Frame | Unreadable
    images_NHWC: Images | None
    """one image for each region; none when the picture has a problem"""
    verdict: Verdict
    stage_ms: dict[str, float]


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
        self.crops = [region.crop for region in self._regions]
        self._quality = quality or QualitySettings()
        self._seen = Seen()
        self.rejected_by: Counter[str] = Counter()
        self.sick_in_a_row = 0
        """answers that are no numbers, since the last one that was"""

    def view(self, picture: Frame | Unreadable, inputs: VehicleInputs = NO_INPUTS) -> View:
        """Checked, cut and resized; this part may run in another thread than the model."""
        if isinstance(picture, Unreadable):
            return View(picture, None, Verdict((picture.problem,)), {})
        stages = _Stages()
        with stages.timed("check"):
            speed_mps = inputs.speed_mps(picture.captured_mono_ns)
            standing = speed_mps is not None and speed_mps < STANDING_MPS
            look = look_at(picture, self._quality, self.crops)
            self._seen, verdict = check(self._seen, look, self._quality, standing)
        with stages.timed("prepare"):
            images_NHWC = None if verdict.problems else self._prepared(picture)
        return View(picture, images_NHWC, verdict, stages.milliseconds)

    def view_of_checked(self, frame: Frame, obstructed: tuple[bool, ...]) -> View:
        """A frame that another perception of the same camera has checked."""
        return View(frame, self._prepared(frame), Verdict((), obstructed), {})

    def follow(self, before: Perception) -> None:
        """Remember what the one before has seen of the camera."""
        self._seen, self.rejected_by = before._seen, before.rejected_by

    def judge(self, view: View) -> Evidence:
        if view.images_NHWC is None:
            return self._evidence(view, ())
        stages = _Stages()
        with stages.timed("predict"):
            prediction = self._predictor.predict(view.images_NHWC)
        view.stage_ms.update(stages.milliseconds)
        return self._evidence(view, self._judged(prediction, view.verdict.obstructed))

    def _prepared(self, frame: Frame) -> Images:
        if len(self.crops) == 1:
            return self._preprocessing.prepare(frame.pixels, self.crops[0])[None]
        return np.stack([self._preprocessing.prepare(frame.pixels, crop) for crop in self.crops])

    def _evidence(self, view: View, regions: tuple[RegionEvidence, ...]) -> Evidence:
        self.rejected_by.update(view.verdict.problems)
        return Evidence(
            number=view.picture.number,
            captured_mono_ns=view.picture.captured_mono_ns,
            captured_utc=view.picture.captured_utc,
            regions=regions,
            problems=view.verdict.problems,
            stage_ms=view.stage_ms,
            rejected_by=dict(self.rejected_by),
        )

    def _judged(self, prediction: Prediction, obstructed: tuple[bool, ...]) -> tuple[RegionEvidence, ...]:
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


def perception_of(vehicle: Vehicle, model: LoadedModel) -> Perception:
    return Perception(model.predictor, model.preprocessing, vehicle.regions, vehicle.quality, model.geometry)


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
