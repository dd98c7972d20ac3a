"""A new bundle beside the one that runs: the worker asks a process of its own about the same live frames."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress

import numpy as np
from pydantic import ValidationError

from edge_road.clock import Clock, SystemClock
from edge_road.frames import Frame
from edge_road.runtime.candidate import LARGEST_RECORD_BYTES, Question
from edge_road.runtime.evidence import Evidence, Failed, Loaded, SwapStep
from edge_road.runtime.link import Setup, SupervisorEnd
from edge_road.runtime.spawning import KILL_S, socket_pair, spawn
from edge_road.runtime.swap_rules import Canary, said
from edge_road.runtime.vehicle import Vehicle

EVERY_S = 0.1
"""frames further apart show another piece of road, and two models never take a whole core"""


class Trial:
    """One question at a time: the shared memory is written only while nobody reads it."""

    def __init__(
        self, vehicle: Vehicle, live_confidence: float, period_s: float, machine: Clock | None = None
    ) -> None:
        self.vehicle, self._live_confidence = vehicle, live_confidence
        self._machine = machine or SystemClock()
        self._canary = Canary(vehicle.swap, period_s)
        self._asked: Evidence | None = None
        self._asked_ns = self._began_ns = self._machine.mono_ns()
        self.loaded: Loaded | None = None
        self._memory = os.memfd_create("edge_road_frame")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket_pair()
        self._channel: socket.socket = ours
        try:
            SupervisorEnd(ours).send_setup(Setup(vehicle=self.vehicle))
            return spawn("edge_road.runtime.candidate", [theirs.fileno(), self._memory])
        except OSError:  # no memory or no process to be had
            ours.close()
            os.close(self._memory)
            raise
        finally:
            theirs.close()

    def offer(self, frame: Frame, live: Evidence) -> None:
        """Ask about this frame too, when nothing is asked already and the last was long enough ago."""
        due = (self._machine.mono_ns() - self._asked_ns) / 1e9 >= EVERY_S
        if self.loaded is None or self._asked is not None or live.problems or not due:
            return
        os.pwrite(self._memory, np.ascontiguousarray(frame.pixels).data, 0)
        question = Question(
            number=frame.number,
            captured_mono_ns=frame.captured_mono_ns,
            height=frame.pixels.shape[0],
            width=frame.pixels.shape[1],
            obstructed=tuple(region.obstructed for region in live.regions),
        )
        self._asked, self._asked_ns = live, self._machine.mono_ns()
        with suppress(ConnectionError):  # whoever is gone is noticed by `look`
            self._channel.send(question.model_dump_json().encode())

    def look(self) -> SwapStep | None:
        """What has come of it: none while it goes on; after `refused` or a passed canary it is over."""
        try:
            record = self._channel.recv(LARGEST_RECORD_BYTES)
        except BlockingIOError:
            return self._stalled() or self._verdict()
        except ConnectionError:
            record = b""
        try:
            return self._take(record) if record else self._refused("candidate_died")
        except ValidationError:
            return self._refused("candidate_talks_nonsense")

    def _take(self, record: bytes) -> SwapStep | None:
        if self.loaded is None:
            return self._take_first(record)
        self._compare(Evidence.model_validate_json(record))
        return self._verdict()

    @property
    def passed(self) -> bool:
        return self.loaded is not None and self._canary.verdict(self._elapsed_s()) == ""

    @property
    def figures(self) -> dict[str, float]:
        return self._canary.figures()

    def close(self) -> None:
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # stuck in the kernel; it cannot hold us up
            self._process.wait(KILL_S)
        self._channel.close()
        os.close(self._memory)

    def _take_first(self, record: bytes) -> SwapStep:
        if b'"kind":"failed"' in record[:20]:
            error = Failed.model_validate_json(record).error()
            return self._refused("; ".join([error.what, *error.details.values()]))
        self.loaded = Loaded.model_validate_json(record)
        self._began_ns = self._machine.mono_ns()
        return self._step("canary")

    def _compare(self, answer: Evidence) -> None:
        live, self._asked = self._asked, None
        assert live is not None
        assert self.loaded is not None
        rules = self.vehicle.decision
        own = rules.confidence
        self._canary.add(
            said(live, own or self._live_confidence, rules),
            said(answer, own or self.loaded.confidence_threshold, rules),
            live.stage_ms.get("predict", 0.0),
            answer.stage_ms.get("predict", 0.0),
        )

    def _stalled(self) -> SwapStep | None:
        """Nobody waits for the candidate, so it gets as long for an answer as for its start."""
        limit_s = self.vehicle.worker.ready_s
        if self.loaded is None and self._elapsed_s() > limit_s:
            return self._refused("candidate_not_ready")
        waits_s = (self._machine.mono_ns() - self._asked_ns) / 1e9
        return self._refused("candidate_hangs") if self._asked and waits_s > limit_s else None

    def _verdict(self) -> SwapStep | None:
        reason = self._canary.verdict(self._elapsed_s()) if self.loaded else None
        return self._refused(reason) if reason else None

    def _elapsed_s(self) -> float:
        return (self._machine.mono_ns() - self._began_ns) / 1e9

    def _refused(self, reason: str) -> SwapStep:
        return self._step("refused", reason)

    def _step(self, stage: str, reason: str = "") -> SwapStep:
        return SwapStep.model_validate(
            {
                "stage": stage,
                "bundle": str(self.vehicle.bundle),
                "loaded": self.loaded,
                "reason": reason,
                "figures": self.figures,
            }
        )
