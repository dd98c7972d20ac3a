"""From a decision to the message that leaves the vehicle."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from edge_road import __version__
from edge_road.clock import Clock, clock_synced
from edge_road.conditions import STATES
from edge_road.config import settings_digest
from edge_road.road_state import RegionState, RoadState
from edge_road.runtime.decision import Decision
from edge_road.runtime.evidence import Evidence, RegionEvidence
from edge_road.runtime.outputs import Output
from edge_road.runtime.vehicle import Vehicle

NO_MODEL = "none"


class Publisher:
    """Numbers the messages of one start of the daemon without a hole."""

    def __init__(self, vehicle: Vehicle, clock: Clock, outputs: Sequence[Output]) -> None:
        self._vehicle, self._clock, self._outputs = vehicle, clock, outputs
        self._config_digest = settings_digest(vehicle)
        self._boot_id = uuid.uuid4().hex
        self.sent = 0
        self.model_digest = NO_MODEL

    def publish(self, decision: Decision, basis: Evidence | None, dropped: int) -> RoadState:
        """`basis` is the evidence of the newest usable frame."""
        message = self._message(decision, basis, dropped)
        self.sent += 1
        line = message.to_json()
        for output in self._outputs:
            output.publish(message, line)
        return message

    @property
    def unheard(self) -> bool:
        """There were outputs, and nobody can read any of them again."""
        return bool(self._outputs) and all(output.gone for output in self._outputs)

    def _message(self, decision: Decision, basis: Evidence | None, dropped: int) -> RoadState:
        now_ns, captured_ns = self._clock.mono_ns(), decision.captured_mono_ns
        shown = basis if basis is not None and basis.captured_mono_ns == captured_ns else None
        age_ms = None if captured_ns is None else (now_ns - captured_ns) / 1e6
        return RoadState.model_validate(
            {
                "vehicle": self._vehicle.vehicle,
                "boot_id": self._boot_id,
                "seq": self.sent,
                "state": decision.state,
                "probabilities": _by_state(decision.probabilities) if decision.probabilities else {},
                "reasons": decision.reasons,
                "published_mono_ns": now_ns,
                "captured_mono_ns": captured_ns,
                "captured_utc": shown.captured_utc if shown else None,
                "clock_synced": clock_synced(),
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
    return RegionState(name=region.name, probabilities=_by_state(region.probabilities))


def _by_state(probabilities: Sequence[float]) -> dict[str, float]:
    return {state: round(min(1.0, p), 4) for state, p in zip(STATES, probabilities)}
