"""The newest vehicle inputs: filled by whichever connection hears of them, read by the supervisor."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from edge_road.clock import Clock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.inputs_parse import take_gpsd, take_json
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs

Parse = Callable[[VehicleInputs, bytes, int], VehicleInputs]

log = logging.getLogger(__name__)


class InputBox:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._newest = NO_INPUTS
        self.refused = 0

    def newest(self) -> VehicleInputs:
        return self._newest

    def take(self, payload: bytes) -> None:
        self._take_as(take_json, payload)

    def take_gpsd(self, line: bytes) -> None:
        self._take_as(take_gpsd, line)

    def _take_as(self, parse: Parse, payload: bytes) -> None:
        """What makes no sense is counted, told once, and changes nothing."""
        try:
            with self._lock:
                self._newest = parse(self._newest, payload, self._clock.mono_ns())
        except EdgeRoadError as error:
            self.refused += 1
            if self.refused == 1:
                log.warning("a vehicle input is ignored: %s", error)
