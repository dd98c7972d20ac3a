"""From a decision to the message that leaves the vehicle."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

from edge_road import __version__
from edge_road.clock import Clock, clock_synced
from edge_road.conditions import STATES, UNKNOWN
from edge_road.road_state import RegionState, RoadState
from edge_road.runtime.decision import Decision, is_distribution
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.outputs import Output
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_digest import vehicle_digest
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs

NO_MODEL = "none"
BLIND = Decision(UNKNOWN, ("offline",), None, None)
Listener = Callable[[RoadState, str], None]


def new_boot_id() -> str:
    return uuid.uuid4().hex


class Publisher:
    """Numbers the messages of one start of the daemon without a hole."""

    def __init__(
        self, vehicle: Vehicle, clock: Clock, outputs: Sequence[Output] = (), boot_id: str | None = None
    ) -> None:
        self._clock = clock
        self.outputs: list[Output] = list(outputs)
        self.listeners: list[Listener] = []
        """whoever else wants to know, in this process; called at once"""
        self.boot_id = boot_id or new_boot_id()
        self.sent = 0
        self.model_digest = NO_MODEL
        self.remarks: tuple[str, ...] = ()
        """reasons that every message carries"""
        self.use(vehicle)

    def use(self, vehicle: Vehicle) -> None:
        self._vehicle = vehicle
        self._config_digest = vehicle_digest(vehicle)

    def publish(
        self, decision: Decision, basis: Evidence | None, dropped: int, inputs: VehicleInputs = NO_INPUTS
    ) -> RoadState:
        """`basis` is the evidence of the newest usable frame."""
        message = self._message(decision, basis, dropped, inputs)
        self.sent += 1
        line = message.to_json()
        for output in self.outputs:
            output.publish(message, line)
        for listener in self.listeners:
            listener(message, line)
        return message

    def offline(self) -> str:
        """What others say in our name when we vanish."""
        return self._message(BLIND, None, 0, NO_INPUTS).to_json()

    @property
    def unheard(self) -> bool:
        """There were outputs, and nobody can read any of them again."""
        return bool(self.outputs) and all(output.gone for output in self.outputs)

    def _message(
        self, decision: Decision, basis: Evidence | None, dropped: int, inputs: VehicleInputs
    ) -> RoadState:
        now_ns, captured_ns = self._clock.mono_ns(), decision.captured_mono_ns
        shown = basis if basis is not None and basis.captured_mono_ns == captured_ns else None
        age_ms = None if captured_ns is None else (now_ns - captured_ns) / 1e6
        return RoadState.model_validate(
            {
                "vehicle": self._vehicle.vehicle,
                "boot_id": self.boot_id,
                "seq": self.sent,
                "state": decision.state,
                "probabilities": _by_state(decision.probabilities) if decision.probabilities else {},
                "reasons": (*decision.reasons, *self.remarks),
                "published_mono_ns": now_ns,
                "captured_mono_ns": captured_ns,
                "captured_utc": shown.captured_utc if shown else None,
                "clock_synced": clock_synced(),
                "position": inputs.position_at(now_ns),
                "speed_mps": inputs.speed_mps(now_ns),
                "regions": [_region(r) for r in shown.regions] if shown else [],
                "age_ms": None if age_ms is None else round(max(0.0, age_ms), 3),
                "valid_for_ms": round(2000 / self._vehicle.heartbeat_hz),
                "stage_ms": shown.stage_ms if shown else {},
                "dropped": dropped,
                "model_digest": self.model_digest,
                "config_digest": self._config_digest,
                "version": __version__,
            }
        )


def _region(region: RegionEvidence) -> RegionState:
    """Nothing but its name when it is covered and the model gave no probabilities."""
    shares = region.probabilities if is_distribution(region.probabilities) else ()
    return RegionState(name=region.name, probabilities=_by_state(shares))


def _by_state(probabilities: Sequence[float]) -> dict[str, float]:
    return {state: round(min(1.0, p), 4) for state, p in zip(STATES, probabilities)}
