"""Which model judges: the one in charge, a candidate on trial beside it, the one before until it may go."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from edge_road.errors import BundleError, EdgeRoadError
from edge_road.frames import Frame
from edge_road.runtime.evidence import Evidence, Loaded, SwapStep
from edge_road.runtime.link import Order
from edge_road.runtime.model import LoadedModel, facts, load_model
from edge_road.runtime.perception import Perception, perception_of
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.trial import Trial
from edge_road.runtime.vehicle import Vehicle

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seated:
    vehicle: Vehicle
    model: LoadedModel
    perception: Perception

    @classmethod
    def of(cls, vehicle: Vehicle, model: LoadedModel) -> Seated:
        return cls(vehicle, model, perception_of(vehicle, model))


class ModelSeat:
    """Turned by the worker's loop; nothing here waits."""

    def __init__(self, vehicle: Vehicle, model: LoadedModel, report: Callable[[SwapStep], None]) -> None:
        self.now = Seated.of(vehicle, model)
        self._report = report
        self._before: Seated | None = None
        self._trial: Trial | None = None
        self._loading: Loading | None = None

    def obey(self, order: Order, period_s: float) -> None:
        if order.what == "keep":
            self._before = None
        elif order.what == "back" and self._before is not None:
            self._seat(self._before, "rolled_back", {})
            self._before = None
        elif order.what == "try":
            assert order.vehicle is not None
            self._try(order.vehicle, period_s)

    def offer(self, picture: Frame | Unreadable, evidence: Evidence) -> None:
        """A frame that the model in charge has judged, for the candidate to judge too."""
        if self._trial is not None and isinstance(picture, Frame):
            self._trial.offer(picture, evidence)

    def turn(self) -> None:
        if self._trial is not None:
            self._watch(self._trial)
        elif self._loading is not None and self._loading.over:
            loading, self._loading = self._loading, None
            self._take_over(loading)

    def _try(self, vehicle: Vehicle, period_s: float) -> None:
        try:
            if self._trial is not None or self._loading is not None:
                raise BundleError("another bundle is on trial")
            self._trial = Trial(vehicle, self.now.model.confidence_threshold, period_s)
        except (EdgeRoadError, OSError) as error:
            self._refuse(vehicle, str(error))

    def _watch(self, trial: Trial) -> None:
        step, passed = trial.look(), trial.passed
        if step is not None:
            self._report(step)
        refused = step is not None and step.stage == "refused"
        if passed and not refused:
            assert trial.loaded is not None
            self._loading = Loading(trial.vehicle, trial.loaded, trial.figures)
        if passed or refused:
            trial.close()
            self._trial = None

    def _take_over(self, loading: Loading) -> None:
        if loading.model is None:
            return self._refuse(loading.vehicle, loading.error)
        before, candidate = self.now, Seated.of(loading.vehicle, loading.model)
        self._seat(candidate, "swapped", loading.figures)
        self._before = before
        return None

    def _seat(self, seated: Seated, stage: str, figures: dict[str, float]) -> None:
        seated.perception.follow(self.now.perception)
        self.now = seated
        log.info("%s: %s judges from now on", stage, seated.model.digest[:16])
        self._report(_step(stage, seated.vehicle, loaded=facts(seated.model), figures=figures))

    def _refuse(self, vehicle: Vehicle, reason: str) -> None:
        self._report(_step("refused", vehicle, reason=reason))


class Loading:
    """The candidate once more, in this process: it must be the very bundle that passed."""

    def __init__(self, vehicle: Vehicle, tried: Loaded, figures: dict[str, float]) -> None:
        self.vehicle, self._tried, self.figures = vehicle, tried, figures
        self.model: LoadedModel | None = None
        self.error = ""
        self._thread = threading.Thread(target=self._load, name="loading", daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def _load(self) -> None:
        try:
            model = load_model(self.vehicle)
            if model.digest != self._tried.model_digest:
                raise BundleError("the bundle has changed since it was tried")
            self.model = model
        except EdgeRoadError as error:
            self.error = str(error)
        except Exception as error:  # in this thread nobody else would hear of it
            self.error = f"{type(error).__name__}: {error}"


def _step(stage: str, vehicle: Vehicle, **more: object) -> SwapStep:
    return SwapStep.model_validate({"stage": stage, "bundle": str(vehicle.bundle), **more})
