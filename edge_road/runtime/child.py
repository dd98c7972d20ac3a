"""The worker as the supervisor sees it: started, listened to, killed when silent, started again."""

from __future__ import annotations

import logging
import random
import signal
import subprocess

from edge_road.clock import Clock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.evidence import Failed, Ready
from edge_road.runtime.link import AnyReport, Order, Setup, SupervisorEnd
from edge_road.runtime.rehearsal import NO_REHEARSAL, Rehearsal
from edge_road.runtime.spawning import KILL_S, WORKER, EarlyWorker, socket_pair, spawn
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import VehicleInputs

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.2
_Started = tuple[subprocess.Popen[bytes], SupervisorEnd]
STEADY_S = 30.0
"""a worker that lived this long has earned a quick restart"""


class Worker:
    """Time here is the machine's, not the drive's: it concerns a process, not the road."""

    def __init__(
        self,
        vehicle: Vehicle,
        machine: Clock,
        rehearsal: Rehearsal = NO_REHEARSAL,
        early: EarlyWorker | None = None,
    ) -> None:
        self._vehicle, self._machine, self._rehearsal = vehicle, machine, rehearsal
        self._limits, self._early = vehicle.worker, early
        self._process: subprocess.Popen[bytes] | None = None
        self._link: SupervisorEnd | None = None
        self._started_ns = self._heard_ns = machine.mono_ns()
        self._ready: Ready | None = None
        self._is_ready = False
        self._pause_s = FIRST_PAUSE_S
        self._restart_ns = 0
        self.failed: Failed | None = None
        """why it gave up, if it could say so"""
        self.starts = 0

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def link(self) -> SupervisorEnd | None:
        return self._link

    def start_if_due(self) -> bool:
        """Start it unless it runs or has to wait; true when it was started."""
        if self._process is not None or self._machine.mono_ns() < self._restart_ns:
            return False
        self._started_ns = self._heard_ns = self._machine.mono_ns()
        self._is_ready, self.failed = False, None
        self.starts += 1
        origin_ns = self._ready.origin_mono_ns if self._ready else None
        rehearsal = self._rehearsal if self.starts == 1 else self._rehearsal.still_to_come(self._started_ns)
        setup = Setup(vehicle=self._vehicle, origin_mono_ns=origin_ns, rehearsal=rehearsal)
        early, self._early = self._early, None
        try:
            self._process, self._link = _hired(early, setup) or _started(setup)
        except OSError as error:  # no memory or no process to be had: that may pass
            self._plan_restart(f"not started: {error.strerror}", error.errno or 0)
        return self.running

    def receive(self) -> list[AnyReport] | None:
        """What it has said; none, once, when it is gone: it is then cleared away and started again."""
        if self._link is None:
            return []
        try:
            reports = self._link.receive()
        except EdgeRoadError as error:
            log.error("%s", error)
            reports = None
        if reports is None:
            self._clear_away("ended")
            return None
        if reports:
            self._heard_ns = self._machine.mono_ns()
        for report in reports:
            if isinstance(report, Ready):
                self._ready, self._is_ready = report, True
            elif isinstance(report, Failed):
                self.failed = report
        return reports

    def tell(self, inputs: VehicleInputs) -> None:
        """What the vehicle says of itself, for the worker's checks."""
        if self._link is not None and self._is_ready:
            self._link.send_inputs(inputs)

    def order(self, order: Order) -> bool:
        """False when it cannot hear it."""
        return self._link is not None and self._is_ready and self._link.send_order(order)

    def use(self, vehicle: Vehicle) -> None:
        """From its next start on."""
        self._vehicle = vehicle

    def silent_s(self) -> float:
        return (self._machine.mono_ns() - self._heard_ns) / 1e9

    def end_if_stalled(self) -> bool:
        """Kill it when it has been silent for too long; true when that was done."""
        limit_s = self._limits.stall_s if self._is_ready else self._limits.ready_s
        if not self.running or self.silent_s() <= limit_s:
            return False
        self._clear_away(f"was killed after {self.silent_s():.1f} s of silence")
        return True

    def stop(self) -> None:
        """End it for good, at once: it holds nothing that would need to be saved."""
        if self._process is not None:
            self._clear_away(None)

    def _clear_away(self, why: str | None) -> None:
        assert self._process is not None
        assert self._link is not None
        self._process.send_signal(signal.SIGKILL)
        try:
            code = self._process.wait(timeout=KILL_S)
        except subprocess.TimeoutExpired:  # stuck in the kernel; it cannot hold us up
            code = -signal.SIGKILL
        self._link.close()
        self._process = self._link = None
        if why is not None:
            self._plan_restart(why, code)

    def _plan_restart(self, why: str, code: int) -> None:
        lived_s = (self._machine.mono_ns() - self._started_ns) / 1e9
        if lived_s > STEADY_S:
            self._pause_s = FIRST_PAUSE_S
        pause_s = self._pause_s * random.uniform(0.75, 1.25)
        self._restart_ns = self._machine.mono_ns() + round(pause_s * 1e9)
        self._pause_s = min(2 * self._pause_s, self._limits.longest_pause_s)
        log.warning("the worker %s (code %d); next start in %.1f s", why, code, pause_s)


def _hired(early: EarlyWorker | None, setup: Setup) -> _Started | None:
    """The worker that waits for its settings already, if there is one and it still lives."""
    if early is None:
        return None
    link = SupervisorEnd(early.channel)
    try:
        link.send_setup(setup)
    except ConnectionError:
        early.close()
        return None
    return early.process, link


def _started(setup: Setup) -> _Started:
    ours, theirs = socket_pair()
    with theirs:
        link = SupervisorEnd(ours)
        link.send_setup(setup)
        try:
            return _spawn(theirs.fileno()), link
        except OSError:
            link.close()
            raise


def _spawn(descriptor: int) -> subprocess.Popen[bytes]:
    return spawn(WORKER, [descriptor])
