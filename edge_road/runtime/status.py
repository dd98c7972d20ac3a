"""How the daemon fares: one object that the supervisor fills and that every interface reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from edge_road import __version__
from edge_road.clock import Clock
from edge_road.conditions import STATES, UNKNOWN
from edge_road.road_state import RoadState
from edge_road.runtime.events.watcher import NO_FAULT
from edge_road.runtime.events.writer import StorageHealth
from edge_road.runtime.evidence import Machine
from edge_road.runtime.machine_facts import machine_facts
from edge_road.runtime.outputs.output import OutputHealth

BLIND_S = 5.0
"""longer without a state, by a fault, is not well: a camera that is opened anew is back before"""
MOST_REASONS = 64
"""reasons are words of ours; the bound is for the day on which they are not"""


class Status:
    """Written by one thread, read by others: every field is replaced as a whole."""

    def __init__(self, vehicle: str, boot_id: str, machine: Clock) -> None:
        self.vehicle, self.boot_id = vehicle, boot_id
        self._machine = machine
        self._started_ns = machine.mono_ns()
        self._published_ns = self._seeing_ns = self._started_ns
        self.newest: tuple[RoadState, str] | None = None
        self.messages: Counter[str] = Counter({state: 0 for state in (*STATES, UNKNOWN)})
        self.reasons: Counter[str] = Counter()
        self.frames = self.dropped = self.rejected = self.worker_starts = 0
        self.unfit: Counter[str] = Counter()
        """frames that were not judged, by problem"""
        self.source = self.predictor = ""
        self.outputs: Callable[[], Sequence[OutputHealth]] = tuple
        self.machine: Machine | None = None
        """how the computer does, as the worker last saw it"""
        self.machine_facts = machine_facts()
        self.rehearsal: tuple[str, ...] = ()
        """faults that are injected on purpose"""
        self.swap: dict[str, Any] | None = None
        """how a new bundle fares"""
        self.smoke: dict[str, Any] | None = None
        """the self-test beside the start: its verdict, and of which model"""
        self.storage: Callable[[], StorageHealth] | None = None

    def published(self, message: RoadState, line: str) -> None:
        self.newest = (message, line)
        self._published_ns = self._machine.mono_ns()
        if message.state != UNKNOWN or NO_FAULT.issuperset(message.reasons):
            self._seeing_ns = self._published_ns
        self.messages[message.state] += 1
        for reason in message.reasons:
            if reason in self.reasons or len(self.reasons) < MOST_REASONS:
                self.reasons[reason] += 1

    def summary(self) -> str:
        return (
            f"{self.frames} frames, {self.dropped} dropped, {self.rejected} pictures unreadable, "
            f"worker started {self.worker_starts} times"
        )

    def silent_s(self) -> float:
        """Since the last message, of whatever kind."""
        return (self._machine.mono_ns() - self._published_ns) / 1e9

    def blind_s(self) -> float:
        """For so long every message has been `unknown` by a fault."""
        return (self._published_ns - self._seeing_ns) / 1e9

    def _smoke_failed(self) -> bool:
        """The model on duty did; another one, since a swap, has its own merits."""
        if self.smoke is None or self.newest is None:
            return False
        return bool(self.smoke["smoke"] == "failed" and self.smoke["digest"] == self.newest[0].model_digest)

    def up_s(self) -> float:
        return (self._machine.mono_ns() - self._started_ns) / 1e9

    @property
    def alive(self) -> bool:
        return self.newest is not None and self.silent_s() * 1000 <= self.newest[0].valid_for_ms

    def health(self) -> dict[str, Any]:
        message = self.newest[0] if self.newest else None
        storage = self.storage() if self.storage else None
        outputs = [asdict(output) for output in self.outputs()]
        return {
            "ok": self.alive
            and self.blind_s() < BLIND_S
            and not self.rehearsal
            and not self._smoke_failed()
            and all(output["ok"] for output in outputs)
            and (storage is None or storage.ok),
            "alive": self.alive,
            "vehicle": self.vehicle,
            "boot_id": self.boot_id,
            "version": __version__,
            "up_s": round(self.up_s(), 1),
            "blind_s": round(self.blind_s(), 1),
            "state": message.state if message and self.alive else UNKNOWN,
            "reasons": (list(message.reasons) if self.alive else ["stale"]) if message else ["starting"],
            "source": self.source,
            "predictor": self.predictor,
            "frames": self.frames,
            "dropped": self.dropped,
            "rejected": self.rejected,
            "worker_starts": self.worker_starts,
            "machine": {
                **asdict(self.machine_facts),
                **(self.machine.model_dump(exclude={"kind"}) if self.machine else {}),
            },
            "swap": self.swap,
            "smoke": self.smoke,
            "rehearsal": list(self.rehearsal),
            "storage": asdict(storage) if storage else None,
            "outputs": outputs,
        }
