"""A new bundle takes over while the daemon runs: tried beside the old one, then on probation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_road.clock import Clock
from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.events.event import Severity
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.evidence import Evidence, Loaded, SwapStep
from edge_road.runtime.link import Order
from edge_road.runtime.status import Status
from edge_road.runtime.swap_rules import Probation
from edge_road.runtime.vehicle import Vehicle

log = logging.getLogger(__name__)

Use = Callable[[Vehicle, "Loaded | None"], None]


@dataclass(frozen=True)
class Under:
    """The swap that is under way."""

    old: Vehicle
    new: Vehicle
    probation: Probation | None = None
    returning: bool = False
    """the worker was told to take the old model back"""


class Swap:
    """Every step is an event, a log line and a field of the health report."""

    def __init__(
        self,
        journal: Journal,
        status: Status,
        clock: Clock,
        order: Callable[[Order], bool],
        use: Use,
        settle: Callable[[Outcome], None],
    ) -> None:
        self._journal, self._status, self._clock = journal, status, clock
        self._order, self._use, self._settle = order, use, settle
        self._under: Under | None = None

    @property
    def busy(self) -> bool:
        return self._under is not None

    def begin(self, old: Vehicle, new: Vehicle) -> None:
        under = Under(old, new)
        if self._order(Order(what="try", vehicle=new)):
            self._under = under
            self._tell("verifying", new.bundle)
        else:
            self._conclude("refused", under, "no_model_to_compare_with", {})

    def take(self, step: SwapStep) -> None:
        """What the worker says of the candidate."""
        under = self._under
        if under is None:
            return
        if step.stage == "canary":
            self._tell("canary", under.new.bundle)
        elif step.stage == "refused":
            self._end("refused", under, step.reason, step.figures)
        elif step.stage == "swapped":
            until_ns = self._clock.mono_ns() + round(under.new.swap.trial_s * 1e9)
            probation = Probation(until_ns, step.figures.get("slowest_ms", float("inf")))
            self._under = Under(under.old, under.new, probation)
            self._use(under.new, step.loaded)
            self._tell("swapped", under.new.bundle, figures=step.figures)
        else:
            self._use(under.old, step.loaded)
            self._under = None

    def watch(self, evidence: Evidence) -> None:
        """What the new model says while it is on probation."""
        under = self._under
        if under is None or under.probation is None:
            return
        reason = under.probation.misbehaves(evidence, under.new.decision)
        if reason is not None:
            self._order(Order(what="back"))
            self._conclude("rolled_back", under, reason, {})
            self._under = Under(under.old, under.new, returning=True)
        elif self._clock.mono_ns() >= under.probation.until_ns:
            self._order(Order(what="keep"))
            self._end("kept", under, "", {})

    def worker_lost(self, reason: str) -> None:
        """The next worker begins with the old bundle."""
        under = self._under
        if under is None:
            return
        if under.returning or under.probation is not None:
            self._use(under.old, None)
        if under.returning:
            self._under = None
        else:
            self._end("refused" if under.probation is None else "rolled_back", under, reason, {})

    def _end(self, stage: str, under: Under, reason: str, figures: dict[str, float]) -> None:
        self._under = None
        self._conclude(stage, under, reason, figures)

    def _conclude(self, stage: str, under: Under, reason: str, figures: dict[str, float]) -> None:
        self._tell(stage, under.new.bundle, reason, figures)
        running = under.new if stage == "kept" else under.old
        outcome = {"bundle": str(under.new.bundle), "running": str(running.bundle), "stage": stage}
        self._settle(Outcome.model_validate({**outcome, "reason": reason, "figures": figures}))

    def _tell(
        self, stage: str, bundle: Path | None, reason: str = "", figures: dict[str, float] | None = None
    ) -> None:
        level = logging.ERROR if reason else logging.INFO
        log.log(level, "new bundle %s: %s %s %s", bundle, stage, reason, figures or "")
        told = {"swap": stage, "bundle": str(bundle), "reason": reason, "figures": figures or {}}
        self._status.swap = told
        self._journal.note("model", Severity.WARNING if reason else Severity.NOTE, dict(told))
