"""The process that speaks: it decides from the worker's evidence, and never goes silent.

evidence -> decision -> message; no decoder, no model and no heavy import lives here.
"""

from __future__ import annotations

import logging
import select
from collections import Counter
from dataclasses import replace
from typing import Literal

from edge_road.clock import Clock, SystemClock
from edge_road.errors import BundleError, CameraError, EdgeRoadError
from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.child import Worker
from edge_road.runtime.decision import NO_FRAMES, Decision, Past, decide, interrupt, resume, rules_for
from edge_road.runtime.events.event import Severity
from edge_road.runtime.evidence import Alive, Ended, Evidence, Failed, Loaded, Machine, Ready, SwapStep
from edge_road.runtime.link import INPUTS, AnyReport
from edge_road.runtime.reload import check_reload, needs_new_worker, only_bundle_differs
from edge_road.runtime.spawning import EarlyWorker
from edge_road.runtime.surroundings import Surroundings
from edge_road.runtime.swap import Swap
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS

log = logging.getLogger(__name__)

TICK_S = 0.05
SILENT_S = 0.4
"""a worker tells of itself ten times a second; after this long it hangs"""


class Supervisor:
    def __init__(
        self,
        vehicle: Vehicle,
        around: Surroundings,
        clock: Clock,
        duration_s: float | None = None,
        early: EarlyWorker | None = None,
    ) -> None:
        self._vehicle, self._around, self._clock = vehicle, around, clock
        self._publisher, self._requests, self._status = around.publisher, around.requests, around.status
        self._duration_s = duration_s
        self._worker = self._new_worker(early)
        self._before_reload: Vehicle | None = None
        self._swap = Swap(
            around.journal,
            around.status,
            clock,
            order=lambda order: self._worker.order(order),
            use=self._use_model,
            settle=self._settle,
        )
        self._set_rules(confidence_threshold=1.0, period_s=0.0)
        self._past, self._decided_ns = Past(), clock.mono_ns()
        self._inputs = NO_INPUTS
        self._interrupt("starting")
        self._basis: Evidence | None = None
        self._said: tuple[str, tuple[str, ...]] | None = None
        self._heartbeat_ns = clock.mono_ns()
        self._ready_ns: int | None = None
        self._dropped_before = self._rejected_before = 0
        self._unfit_before: Counter[str] = Counter()
        self._starts_before = 0

    def run(self) -> None:
        """Until the source ends, the duration is over or a signal comes; the last word is `unknown`."""
        try:
            self._let_time_pass()
            self._start_the_others()
            while not self._requests.reason:
                self._worker.start_if_due()
                self._rehearse()
                self._wait()
                self._hear_vehicle()
                self._listen()
                self._let_time_pass()
                self._check_end()
                if self._requests.take_reload():
                    self._reload()
        finally:
            self._around.systemd.stopping()
            self._interrupt(self._requests.reason or "failure")
            self._say(self._decide(None))
            self._worker.stop()
            self._around.live.close()
            reason = self._requests.reason or "failure"
            self._around.journal.note("shutdown", Severity.NOTE, {"reason": reason})
            log.info("%d messages from %s", self._publisher.sent, self._status.summary())

    def _start_the_others(self) -> None:
        """After the first heartbeat: they import libraries, open files and wait for brokers."""
        self._around.journal.start()
        self._around.start_outputs()

    def _rehearse(self) -> None:
        while self._around.rehearsal.active("supervisor.hang", SystemClock().mono_ns()):
            SystemClock().sleep(TICK_S)

    def _wait(self) -> None:
        """Until the worker says something, a tick at most."""
        link = self._worker.link
        select.select([link] if link else [], [], [], TICK_S / self._vehicle.speed)

    def _hear_vehicle(self) -> None:
        newest = self._around.inputs()
        if newest is not self._inputs:
            self._inputs = newest
            self._worker.tell(newest)
            self._around.record({"inputs": INPUTS.dump_python(newest, mode="json")})

    def _listen(self) -> None:
        reports = self._worker.receive()
        for report in reports or ():
            self._take(report)
        if reports is None:
            self._take_death()
        elif self._worker.end_if_stalled():
            self._interrupt("inference_stalled")
            self._swap.worker_lost("inference_stalled")
            self._roll_back_if_new(EdgeRoadError("the worker did not become ready"))
        elif self._hangs():
            self._interrupt("inference_stalled")
        self._status.worker_starts = self._starts_before + self._worker.starts

    def _take_death(self) -> None:
        failed = self._worker.failed
        lost_camera = failed is not None and failed.exit_code == CameraError.exit_code
        self._interrupt(NO_FRAMES if lost_camera else "worker_died")
        self._swap.worker_lost("worker_died")
        self._roll_back_if_new(failed.error() if failed else EdgeRoadError("the worker died at its start"))

    def _record(self, report: AnyReport) -> None:
        self._around.record({"mono_ns": self._decided_ns, "report": report.model_dump(mode="json")})

    def _hangs(self) -> bool:
        is_ready = self._past.outage in (None, "inference_stalled")
        return self._worker.running and is_ready and self._worker.silent_s() > SILENT_S

    def _take(self, report: AnyReport) -> None:
        if isinstance(report, Evidence):
            self._take_evidence(report)
        elif isinstance(report, Ready):
            self._take_ready(report)
        elif isinstance(report, Alive):
            self._record(report)
            self._past = resume(self._past)
        elif isinstance(report, Ended):
            self._count(report)
            self._requests.because("end_of_stream")
        elif isinstance(report, Failed):
            self._take_failure(report)
        elif isinstance(report, Machine):
            self._status.machine = report
        elif isinstance(report, SwapStep):
            self._record(report)
            self._swap.take(report)

    def _take_evidence(self, evidence: Evidence) -> None:
        self._status.frames += 1
        self._count(evidence)
        self._status.unfit = self._unfit_before + Counter(evidence.rejected_by)
        decision = self._decide(evidence)
        self._record(evidence)
        if decision.captured_mono_ns == evidence.captured_mono_ns:
            self._basis = evidence
        self._say(decision)
        self._swap.watch(evidence)

    def _count(self, report: Evidence | Ended) -> None:
        self._status.dropped = self._dropped_before + report.dropped
        self._status.rejected = self._rejected_before + report.rejected

    def _take_ready(self, ready: Ready) -> None:
        log.info("%s on %s", ready.predictor, ready.source)
        self._record(ready)
        self._set_rules(ready.confidence_threshold, ready.period_s)
        self._publisher.model_digest = ready.model_digest
        self._status.predictor, self._status.source = ready.predictor, ready.source
        if self._ready_ns is None:
            self._around.begin_smoke(self._vehicle, ready.model_digest)
            if self._around.bundle_wished():
                self._requests.ask_reload()
        self._past = resume(self._past)
        if ready.first:
            self._dropped_before, self._rejected_before = self._status.dropped, self._status.rejected
            self._unfit_before = self._status.unfit
        self._ready_ns = self._ready_ns or self._clock.mono_ns()
        if self._before_reload is not None:
            self._settle_wish("kept")
        self._before_reload = None

    def _set_rules(self, confidence_threshold: float, period_s: float) -> None:
        self._fitted = (confidence_threshold, period_s)
        self._rules = rules_for(self._vehicle.decision, confidence_threshold, period_s)

    def _take_failure(self, failed: Failed) -> None:
        """What never worked is the user's to mend; what worked once is tried again for ever."""
        if self._ready_ns is not None:
            log.error("the worker gives up: %s", failed.error())
        elif failed.exit_code != BundleError.exit_code or not self._fall_back(failed):
            raise failed.error()

    def _fall_back(self, failed: Failed) -> bool:
        """From an accepted bundle that is damaged to the one that the vehicle file names; never back."""
        damaged, named = self._vehicle.bundle, self._around.instead_of_damaged()
        if named is None or named == damaged:
            return False
        log.error("the accepted bundle %s is left, %s runs instead: %s", damaged, named, failed.error())
        told: dict[str, object] = {"bundle": str(named), "left": str(damaged), "error": failed.what}
        self._around.journal.note("model", Severity.WARNING, told)
        self._around = replace(self._around, record=lambda step: None)  # as with all new settings
        self._use_model(self._vehicle.model_copy(update={"bundle": named}), None)
        self._replace_worker()
        return True

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
        if self._status.alive:
            self._around.systemd.progress()

    def _decide(self, evidence: Evidence | None) -> Decision:
        self._decided_ns = self._clock.mono_ns()
        self._past, decision = decide(self._past, evidence, self._decided_ns, self._rules, self._inputs)
        return decision

    def _interrupt(self, reason: str) -> None:
        self._past = interrupt(self._past, reason)
        self._around.record({"outage": reason})

    def _say(self, decision: Decision) -> None:
        if self._said is None or decision.state != self._said[0]:
            log.info("%s", " ".join((decision.state, *decision.reasons)))
        self._said = (decision.state, decision.reasons)
        self._around.record({"mono_ns": self._decided_ns, "say": True})
        message = self._publisher.publish(decision, self._basis, self._status.dropped, self._inputs)
        self._around.live.show(message)
        self._around.journal.watch(message)

    def _check_end(self) -> None:
        if self._publisher.unheard:
            self._requests.because("shutdown")
        if self._ready_ns is None or self._duration_s is None:
            return
        if self._clock.mono_ns() - self._ready_ns >= self._duration_s * 1e9:
            self._requests.because("shutdown")

    def _reload(self) -> None:
        """What is wrong with the new settings is told, and the old ones stay."""
        self._around.systemd.reloading()
        try:
            if self._around.load_again is None:
                raise EdgeRoadError("there is no vehicle file to read again")
            if self._swap.busy:
                raise EdgeRoadError("a new bundle is on trial")
            vehicle = self._around.load_again()
            check_reload(self._vehicle, vehicle)
            if only_bundle_differs(self._vehicle, vehicle):
                return self._swap.begin(self._vehicle, vehicle)
            self._around.use_outputs(vehicle)
        except EdgeRoadError as error:
            return self._refuse(error)
        log.info("the settings were read again")
        self._use(vehicle)
        return None

    def _use(self, vehicle: Vehicle) -> None:
        old, self._vehicle = self._vehicle, vehicle
        if vehicle != old:  # a replay knows only the settings that the recording begins with
            self._around = replace(self._around, record=lambda step: None)
        self._publisher.use(vehicle)
        self._set_rules(*self._fitted)
        if needs_new_worker(old, vehicle):
            self._before_reload = old
            self._replace_worker()
        else:
            self._worker.use(vehicle)
            self._settle_wish("kept")
        self._around.journal.note("config", Severity.NOTE, {"accepted": True})

    def _use_model(self, vehicle: Vehicle, loaded: Loaded | None) -> None:
        """The worker has changed its model, without a gap; with none, a new worker will begin with it."""
        self._vehicle = vehicle
        self._publisher.use(vehicle)
        self._around.restore_outputs(vehicle)
        if loaded is not None:
            self._set_rules(loaded.confidence_threshold, self._fitted[1])
            self._publisher.model_digest, self._status.predictor = loaded.model_digest, loaded.predictor

    def _settle(self, outcome: Outcome) -> None:
        if outcome.stage == "kept":
            self._worker.use(self._vehicle)
        self._around.settle(outcome.model_copy(update={"digest": self._publisher.model_digest}))

    def _settle_wish(self, stage: Literal["kept", "refused"], reason: str = "") -> None:
        """Somebody waits for the verdict also when a bundle needs no trial, or does not get one."""
        wish, runs = self._around.bundle_wished(), self._vehicle.bundle
        if wish is None or self._swap.busy or (stage == "kept" and wish != runs):
            return
        self._settle(Outcome(bundle=str(wish), running=str(runs), stage=stage, reason=reason))

    def _new_worker(self, early: EarlyWorker | None = None) -> Worker:
        return Worker(self._vehicle, SystemClock(), self._around.rehearsal, early)

    def _replace_worker(self) -> None:
        self._worker.stop()
        self._starts_before += self._worker.starts
        self._worker = self._new_worker()
        self._interrupt("starting")

    def _roll_back_if_new(self, error: EdgeRoadError) -> None:
        """A worker that could not even begin with the new settings proves them wrong."""
        if self._before_reload is None:
            return
        self._vehicle, self._before_reload = self._before_reload, None
        self._around.restore_outputs(self._vehicle)
        self._publisher.use(self._vehicle)
        self._replace_worker()
        self._refuse(error)

    def _refuse(self, error: EdgeRoadError) -> None:
        log.error("the new settings are refused, the old ones stay: %s", error)
        details = {"accepted": False, "error": error.what, **error.details}
        self._around.journal.note("config", Severity.WARNING, dict(details))
        self._settle_wish("refused", error.what)
