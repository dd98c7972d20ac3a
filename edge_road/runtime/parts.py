"""Which parts of the picture spoke for the state: occlusion sensitivity, one part of each frame.

Zeiler and Fergus, Visualizing and Understanding Convolutional Networks (2014), section 4.2: cover a part,
ask again, and see how much less the model believes what it said. Each answer is compared with that of the
very same frame; the map is put together from as many frames as it has parts. Only while a page asks for
it, and only where the model leaves two thirds of the time between two frames idle.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_road.clock import Clock, SystemClock
from edge_road.frames import Images
from edge_road.runtime.evidence import Evidence
from edge_road.runtime.model import LoadedModel
from edge_road.runtime.parts_file import is_wished, parts_path, place_of, write_parts
from edge_road.runtime.perception import View
from edge_road.runtime.vehicle import Region, Vehicle

log = logging.getLogger(__name__)

ROWS, COLUMNS = 4, 6
WISH_NS = 500_000_000
"""between two looks at whether somebody wants to know"""
IDLE = 3
"""the time between frames must be this many times that of the model"""
LEAST_DROP = 0.5
"""of log-odds; when no part does more than this, none is painted in full colour"""
LEAST_SHARE = 1e-6


class Parts:
    """Says at once where the model looks, and on demand what it sees there."""

    def __init__(self, vehicle: Vehicle, model: LoadedModel, machine: Clock | None = None) -> None:
        self._path = parts_path(vehicle)
        self._regions = vehicle.regions
        self._machine = machine or SystemClock()
        self._wished, self._wish_ns = False, 0
        self._called_ns: deque[int] = deque(maxlen=8)
        self._begin(model)

    def look(self, model: LoadedModel, view: View, evidence: Evidence) -> None:
        """After the evidence is sent."""
        if self._path is None:
            return
        self._called_ns.append(self._machine.mono_ns())
        if model is not self._model:
            self._begin(model)
        if self._is_wanted() and self._is_idle(view) and evidence.regions:
            self._step(model, view, evidence)

    def _begin(self, model: LoadedModel) -> None:
        self._model = model
        self._sweep: Sweep | None = None
        regions = self._regions or (Region(name="road", crop=model.preprocessing.crop),)
        self._places = [place_of(region) for region in regions]
        self._tell(self._places, 0.0)

    def _tell(self, regions: list[dict[str, Any]], seconds: float) -> None:
        """What goes wrong here is logged: the road comes first."""
        try:
            if self._path is not None:
                write_parts(self._path, regions, seconds)
        except OSError as error:
            log.warning("the parts for the page cannot be written: %s", error)

    def _is_wanted(self) -> bool:
        now_ns = self._called_ns[-1]
        if now_ns >= self._wish_ns:
            assert self._path is not None
            self._wish_ns, self._wished = now_ns + WISH_NS, is_wished(self._path, self._machine)
            self._sweep = self._sweep if self._wished else None
        return self._wished

    def _is_idle(self, view: View) -> bool:
        times = list(self._called_ns)
        shortest_ns = min((b - a for a, b in pairwise(times)), default=0)
        return shortest_ns > IDLE * 1e6 * view.stage_ms.get("predict", float("inf"))

    def _step(self, model: LoadedModel, view: View, evidence: Evidence) -> None:
        assert view.images_NHWC is not None
        states_NS = np.array([region.probabilities for region in evidence.regions])
        said = tuple(states_NS.argmax(axis=1).tolist())
        if self._sweep is None or self._sweep.said != said:
            self._sweep = Sweep(said, self._called_ns[-1])
        sweep = self._sweep
        prediction = model.predictor.predict(covered(view.images_NHWC, sweep.row, sweep.column))
        sweep.take(states_NS, model.predictor.classes.state_probabilities(prediction.probabilities_NC))
        if sweep.is_whole:
            now_ns = self._machine.mono_ns()
            shares = shares_of(sweep.drops_NRC).tolist()
            told = [{**place, "shares": shares_RC} for place, shares_RC in zip(self._places, shares)]
            self._tell(told, (now_ns - sweep.began_ns) / 1e9)
            self._sweep = Sweep(said, now_ns)


class Sweep:
    """One walk over all parts, for one state of each region."""

    def __init__(self, said: tuple[int, ...], began_ns: int) -> None:
        self.said, self.began_ns = said, began_ns
        self._next = 0
        self.drops_NRC = np.zeros((len(said), ROWS, COLUMNS))

    @property
    def row(self) -> int:
        return self._next // COLUMNS

    @property
    def column(self) -> int:
        return self._next % COLUMNS

    @property
    def is_whole(self) -> bool:
        return self._next == ROWS * COLUMNS

    def take(self, before_NS: npt.NDArray[np.float64], after_NS: npt.NDArray[np.float64]) -> None:
        chosen = (np.arange(len(self.said)), np.array(self.said))
        self.drops_NRC[:, self.row, self.column] = log_odds(before_NS[chosen]) - log_odds(after_NS[chosen])
        self._next += 1


def covered(images_NHWC: Images, row: int, column: int) -> Images:
    """The part in the mean colour of its own picture."""
    height, width = images_NHWC.shape[1:3]
    copies_NHWC: Images = images_NHWC.copy()
    means_N11C = images_NHWC.mean(axis=(1, 2), keepdims=True).astype(np.uint8)
    rows = slice(row * height // ROWS, (row + 1) * height // ROWS)
    columns = slice(column * width // COLUMNS, (column + 1) * width // COLUMNS)
    copies_NHWC[:, rows, columns] = means_N11C
    return copies_NHWC


def log_odds(shares_N: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of probabilities near 1 too, where a difference of the probabilities themselves would show nothing."""
    kept_N = np.clip(np.nan_to_num(shares_N, nan=0.5), LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(np.log(kept_N / (1 - kept_N)))


def shares_of(drops_NRC: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """0 for what did not speak for the state, 1 for what spoke most."""
    most_N11 = np.maximum(drops_NRC.max(axis=(1, 2), keepdims=True), LEAST_DROP)
    return np.asarray(np.round(np.clip(drops_NRC, 0, None) / most_N11, 2))
