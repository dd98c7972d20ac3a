"""The state on a CAN bus at a fixed rate; what has become old is sent as unknown, and never held back."""

from __future__ import annotations

import logging
import threading
from typing import Any

from edge_road.clock import Clock
from edge_road.road_state import RoadState
from edge_road.runtime.outputs.can_frame import CanState, pack
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.vehicle_outputs import CanOutput

log = logging.getLogger(__name__)

REOPEN_S = 2.0


class CanBus:
    gone = False

    def __init__(self, settings: CanOutput, machine: Clock) -> None:
        self._settings, self._machine = settings, machine
        self._newest: tuple[RoadState, int] | None = None
        self._closing = threading.Event()
        self._trouble = "not open yet"
        self._counter = self._lost = 0
        self._thread = threading.Thread(target=self._run, name="can", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def publish(self, message: RoadState, line: str) -> None:
        self._newest = (message, self._machine.mono_ns())

    def publish_event(self, line: str) -> None:
        """A bus has room for the state only."""

    def health(self) -> OutputHealth:
        name = f"can {self._settings.interface}:{self._settings.channel}"
        return OutputHealth(name, not self._trouble, self._trouble, self._lost)

    def close(self, timeout_s: float) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(min(timeout_s, 0.5))

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._send_for_ever()
            except Exception as error:  # every driver has its own
                self._note(str(error) or type(error).__name__)
                self._closing.wait(REOPEN_S)

    def _send_for_ever(self) -> None:
        import can

        with can.Bus(interface=self._settings.interface, channel=self._settings.channel) as bus:
            self._note("")
            while not self._closing.wait(self._settings.period_s):
                self._send(can, bus)
            self._send(can, bus)  # the last word

    def _send(self, can: Any, bus: Any) -> None:
        identifier = self._settings.arbitration_id
        payload = pack(self._state(), self._counter, identifier)
        self._counter += 1
        try:
            bus.send(can.Message(arbitration_id=identifier, data=payload, is_extended_id=False), timeout=0.05)
            self._note("")
        except can.CanOperationError as error:  # a bus that is off or full comes back by itself
            self._lost += 1
            self._note(str(error))

    def _state(self) -> CanState:
        if self._newest is None:
            return CanState()
        message, at_ns = self._newest
        since_ms = (self._machine.mono_ns() - at_ns) / 1e6
        age_ms = None if message.age_ms is None else message.age_ms + since_ms
        share = message.probabilities.get(message.state)
        return CanState(message.state, share, age_ms, message.reasons, since_ms <= message.valid_for_ms)

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning("CAN %s: %s", self._settings.channel, trouble)
        self._trouble = trouble
