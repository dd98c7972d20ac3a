"""From the stream of messages to events: what changed, which fault began, which one is over. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from edge_road.conditions import UNKNOWN
from edge_road.road_state import RoadState
from edge_road.runtime.events.event import Severity

STEADY_S = 1.0
"""a fault that comes back sooner is the same fault; an `unknown` that passes sooner is no change"""
BRIEF_S = 0.2
"""what is over sooner was none: the instant between a worker's start and its first frame"""
NO_FAULT = frozenset(
    {
        "starting",
        "settling",
        "changing",
        "low_confidence",
        "unfamiliar",
        "implausible_temperature",
        "shutdown",
        "end_of_stream",
    }
)
"""reasons that are the road's or the user's doing"""


@dataclass(frozen=True)
class Fault:
    began_ns: int
    seen_ns: int
    times: int = 1
    told: bool = False


@dataclass(frozen=True)
class Seen:
    """All that is remembered."""

    state: str = UNKNOWN
    """the last one that an event told of"""
    told_ns: int = 0
    """when the newest message was made"""
    unknown_since_ns: int | None = None
    model: str | None = None
    faults: dict[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True)
class Happening:
    kind: str
    severity: Severity
    details: dict[str, Any]


def watch(seen: Seen, message: RoadState, no_model: str) -> tuple[Seen, list[Happening]]:
    now_ns = message.published_mono_ns
    seen, model = _model(seen, message.model_digest, no_model)
    seen, faults = _faults(seen, frozenset(message.reasons) - NO_FAULT, now_ns)
    seen, state = _state(seen, message)
    return seen, [*model, *faults, *state]


def _model(seen: Seen, digest: str, no_model: str) -> tuple[Seen, list[Happening]]:
    if digest in (seen.model, no_model):
        return seen, []
    details = {"model_digest": digest, "before": seen.model}
    return replace(seen, model=digest), [Happening("model", Severity.NOTE, details)]


def _faults(seen: Seen, present: frozenset[str], now_ns: int) -> tuple[Seen, list[Happening]]:
    faults = dict(seen.faults)
    happenings = []
    for name in sorted(present):
        fault = faults.get(name, Fault(now_ns, now_ns))
        returned = fault.seen_ns < seen.told_ns
        fault = replace(fault, seen_ns=now_ns, times=fault.times + returned)
        if not fault.told and now_ns - fault.began_ns >= BRIEF_S * 1e9:
            fault = replace(fault, told=True)
            happenings.append(Happening("fault_begin", Severity.WARNING, {"fault": name}))
        faults[name] = fault
    for name in sorted(faults.keys() - present):
        if now_ns - faults[name].seen_ns >= STEADY_S * 1e9:
            fault = faults.pop(name)
            happenings += [_fault_end(name, fault)] if fault.told else []
    return replace(seen, faults=faults, told_ns=now_ns), happenings


def _fault_end(name: str, fault: Fault) -> Happening:
    lasted_s = round((fault.seen_ns - fault.began_ns) / 1e9, 3)
    return Happening("fault_end", Severity.NOTE, {"fault": name, "lasted_s": lasted_s, "times": fault.times})


def _state(seen: Seen, message: RoadState) -> tuple[Seen, list[Happening]]:
    """A road state counts at once; `unknown` when it has lasted."""
    now_ns = message.published_mono_ns
    if message.state == UNKNOWN:
        since_ns = now_ns if seen.unknown_since_ns is None else seen.unknown_since_ns
        seen = replace(seen, unknown_since_ns=since_ns)
        if now_ns - since_ns < STEADY_S * 1e9:
            return seen, []
    else:
        seen = replace(seen, unknown_since_ns=None)
    if message.state == seen.state:
        return seen, []
    severity = Severity.ALARM if message.state == "icy" else Severity.NOTE
    details = {
        "state": message.state,
        "before": seen.state,
        "reasons": list(message.reasons),
        "probabilities": message.probabilities,
        "state_seq": message.seq,
        "position": message.position.model_dump() if message.position else None,
        "speed_mps": message.speed_mps,
    }
    return replace(seen, state=message.state), [Happening("state", severity, details)]
