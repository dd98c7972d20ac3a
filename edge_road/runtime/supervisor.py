"""The process that speaks: it decides from the worker's evidence, and never goes silent.

evidence -> decision -> message; no decoder, no model and no heavy import lives here.
"""

from __future__ import annotations

import logging
import select

from edge_road.clock import Clock, SystemClock
from edge_road.errors import CameraError
from edge_road.runtime.child import Worker
from edge_road.runtime.decision import NO_FRAMES, Decision, Past, decide, interrupt, resume, rules_for
from edge_road.runtime.evidence import Alive, Ended, Evidence, Failed, Ready
from edge_road.runtime.link import AnyReport
from edge_road.runtime.live_line import LiveLine
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.signals import StopRequest
from edge_road.runtime.vehicle import Vehicle

log = logging.getLogger(__name__)

TICK_S = 0.05
SILENT_S = 0.4
"""a worker tells of itself ten times a second; after this long it hangs"""


class Supervisor:
    def __init__(
        self,
        vehicle: Vehicle,
        publisher: Publisher,
        live: LiveLine,
        clock: Clock,
        stop: StopRequest,
        duration_s: float | None = None,
    ) -> None:
        self._vehicle, self._publisher, self._live, self._clock = vehicle, publisher, live, clock
        self._stop, self._duration_s = stop, duration_s
        self._worker = Worker(vehicle, SystemClock())
        self._rules = rules_for(vehicle.decision, confidence_threshold=1.0, period_s=0.0)
        self._past = interrupt(Past(), "starting")
        self._basis: Evidence | None = None
        self._said: tuple[str, tuple[str, ...]] | None = None
        self._heartbeat_ns = clock.mono_ns()
        self._ready_ns: int | None = None
        self._dropped_before = self._dropped = self._rejected = self._frames = 0

    def run(self) -> None:
        """Until the source ends, the duration is over or a signal comes; the last word is `unknown`."""
        try:
            self._let_time_pass()
            while not self._stop.reason:
                self._worker.start_if_due()
                self._wait()
                self._listen()
                self._let_time_pass()
                self._check_end()
        finally:
            self._past = interrupt(self._past, self._stop.reason or "failure")
            self._say(self._decide(None))
            self._worker.stop()
            self._live.close()
            self._log_summary()

    def _wait(self) -> None:
        """Until the worker says something, a tick at most."""
        link = self._worker.link
        select.select([link] if link else [], [], [], TICK_S / self._vehicle.speed)

    def _listen(self) -> None:
        reports = self._worker.receive()
        for report in reports or ():
            self._take(report)
        if reports is None:
            lost_camera = self._worker.failed and self._worker.failed.exit_code == CameraError.exit_code
            self._past = interrupt(self._past, NO_FRAMES if lost_camera else "worker_died")
        elif self._worker.end_if_stalled() or self._hangs():
            self._past = interrupt(self._past, "inference_stalled")

    def _hangs(self) -> bool:
        is_ready = self._past.outage in (None, "inference_stalled")
        return self._worker.running and is_ready and self._worker.silent_s() > SILENT_S

    def _take(self, report: AnyReport) -> None:
        if isinstance(report, Evidence):
            self._take_evidence(report)
        elif isinstance(report, Ready):
            self._take_ready(report)
        elif isinstance(report, Alive):
            self._past = resume(self._past)
        elif isinstance(report, Ended):
            self._stop.because("end_of_stream")
        elif isinstance(report, Failed):
            self._take_failure(report)

    def _take_evidence(self, evidence: Evidence) -> None:
        self._frames += 1
        self._dropped = self._dropped_before + evidence.dropped
        self._rejected = evidence.rejected
        decision = self._decide(evidence)
        if decision.captured_mono_ns == evidence.captured_mono_ns:
            self._basis = evidence
        self._say(decision)

    def _take_ready(self, ready: Ready) -> None:
        log.info("%s on %s", ready.predictor, ready.source)
        self._rules = rules_for(self._vehicle.decision, ready.confidence_threshold, ready.period_s)
        self._publisher.model_digest = ready.model_digest
        self._past = resume(self._past)
        self._dropped_before = self._dropped
        self._ready_ns = self._ready_ns or self._clock.mono_ns()

    def _take_failure(self, failed: Failed) -> None:
        """What never worked is the user's to mend; what worked once is tried again for ever."""
        if self._ready_ns is None:
            raise failed.error()
        log.error("the worker gives up: %s", failed.error())

    def _let_time_pass(self) -> None:
        """A state that has become old is withdrawn at once; the heartbeat keeps its own rhythm."""
        decision = self._decide(None)
        now_ns = self._clock.mono_ns()
        if now_ns >= self._heartbeat_ns:
            period_ns = round(1e9 / self._vehicle.heartbeat_hz)
            missed = (now_ns - self._heartbeat_ns) // period_ns
            self._heartbeat_ns += (missed + 1) * period_ns
            self._say(decision)
        elif (decision.state, decision.reasons) != self._said:
            self._say(decision)

    def _decide(self, evidence: Evidence | None) -> Decision:
        self._past, decision = decide(self._past, evidence, self._clock.mono_ns(), self._rules)
        return decision

    def _say(self, decision: Decision) -> None:
        if self._said is None or decision.state != self._said[0]:
            log.info("%s", " ".join((decision.state, *decision.reasons)))
        self._said = (decision.state, decision.reasons)
        self._live.show(self._publisher.publish(decision, self._basis, self._dropped))

    def _check_end(self) -> None:
        if self._publisher.unheard:
            self._stop.because("shutdown")
        if self._ready_ns is None or self._duration_s is None:
            return
        if self._clock.mono_ns() - self._ready_ns >= self._duration_s * 1e9:
            self._stop.because("shutdown")

    def _log_summary(self) -> None:
        log.info(
            "%d messages from %d frames, %d dropped, %d pictures unreadable, worker started %d times",
            self._publisher.sent,
            self._frames,
            self._dropped,
            self._rejected,
            self._worker.starts,
        )
