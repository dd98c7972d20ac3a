"""A recorded drive once more: what decided the messages gives the same messages again.

A recording is JSON lines: the settings, then every step of the supervisor: a record of the worker, an
outage, or a message, each with its moment. Only the fields named in TIMES may differ in a replay.
A recording ends where new settings were taken.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from edge_road.clock import ScriptedClock
from edge_road.errors import ConfigError
from edge_road.road_state import RoadState
from edge_road.runtime.decision import Decision, Past, decide, interrupt, resume, rules_for
from edge_road.runtime.evidence import Alive, Evidence, Loaded, Ready, SwapStep
from edge_road.runtime.link import AnyReport
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.recorder import Step
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS
from edge_road.settings_errors import first_fault
from edge_road.synthetic.score import score_messages

TIMES = ("boot_id", "clock_synced", "published_mono_ns", "age_ms", "crc32")
"""what may differ between a drive and its replay"""
LARGEST_LINE = 256 * 1024


class Replay:
    """The supervisor's reasoning without its processes."""

    def __init__(self, vehicle: Vehicle, remarks: Sequence[str] = ()) -> None:
        self._vehicle, self._clock = vehicle, ScriptedClock()
        self._publisher = Publisher(vehicle, self._clock, boot_id="replay")
        self._publisher.remarks = tuple(remarks)
        self._rules = rules_for(vehicle.decision, confidence_threshold=1.0, period_s=0.0)
        self._period_s = 0.0
        self._past = Past()
        self._basis: Evidence | None = None
        self._dropped = self._dropped_before = 0
        self._inputs = NO_INPUTS

    def step(self, step: Step) -> RoadState | None:
        """The message, when the step is one."""
        if step.mono_ns is not None:
            self._clock.sleep((step.mono_ns - self._clock.mono_ns()) / 1e9)
        self._inputs = step.inputs or self._inputs
        if step.outage is not None:
            self._past = interrupt(self._past, step.outage)
        if step.report is not None:
            self._take(step.report)
        if not step.say:
            return None
        return self._publisher.publish(self._decide(None), self._basis, self._dropped, self._inputs)

    def _take(self, report: AnyReport) -> None:
        if isinstance(report, Ready):
            self._period_s = report.period_s
            self._use(report)
            self._dropped_before = self._dropped if report.first else self._dropped_before
        if isinstance(report, SwapStep) and report.stage in ("swapped", "rolled_back"):
            assert report.loaded is not None
            self._publisher.use(self._vehicle.model_copy(update={"bundle": Path(report.bundle)}))
            self._use(report.loaded)
        if isinstance(report, (Ready, Alive)):
            self._past = resume(self._past)
        if isinstance(report, Evidence):
            self._dropped = self._dropped_before + report.dropped
            if self._decide(report).captured_mono_ns == report.captured_mono_ns:
                self._basis = report

    def _use(self, model: Ready | Loaded) -> None:
        self._rules = rules_for(self._vehicle.decision, model.confidence_threshold, self._period_s)
        self._publisher.model_digest = model.model_digest

    def _decide(self, evidence: Evidence | None) -> Decision:
        now_ns = self._clock.mono_ns()
        self._past, decision = decide(self._past, evidence, now_ns, self._rules, self._inputs)
        return decision


def replay(lines: Sequence[str], where: object = None) -> list[RoadState]:
    vehicle, remarks, steps = _read(lines, where)
    drive = Replay(vehicle, remarks)
    return [message for step in steps if (message := drive.step(step)) is not None]


def comparable(message: RoadState) -> str:
    """The message without what may differ."""
    values = json.loads(message.to_json())
    return json.dumps({name: value for name, value in values.items() if name not in TIMES})


def _read(lines: Sequence[str], where: object) -> tuple[Vehicle, list[str], list[Step]]:
    try:
        if not lines or any(len(line) > LARGEST_LINE for line in lines):
            raise ValueError("empty, or a line is too long")
        first = json.loads(lines[0])
        vehicle, remarks = Vehicle.model_validate(first["vehicle"]), list(map(str, first.get("remarks", ())))
        return vehicle, remarks, [Step.model_validate(json.loads(line)) for line in lines[1:]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        got = first_fault(error) if isinstance(error, ValidationError) else str(error)
        fix = "`road_daemon.py --record FILE` makes one"
        raise ConfigError("not a recording of a drive", where=where, got=got[:300], fix=fix) from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Say again what a recorded drive said.")
    parser.add_argument("recording", type=Path, metavar="FILE", help="JSON lines of a recorded drive")
    parser.add_argument("--truth", type=Path, help="score the messages by this file of a rendered drive")
    chosen = parser.parse_args(arguments)
    try:
        text = chosen.recording.read_text()
    except (OSError, UnicodeDecodeError) as error:
        got = error.strerror if isinstance(error, OSError) else error
        raise ConfigError("the recording cannot be read", where=chosen.recording, got=got) from None
    messages = replay(_whole_lines(text), chosen.recording)
    for message in messages:
        print(message.to_json())
    if chosen.truth is not None:
        _tell_score(messages, chosen.truth)
    return 0


def _whole_lines(text: str) -> list[str]:
    """Power that was cut while the last one was written took nothing else along."""
    lines = text.splitlines()
    if text.endswith("\n") or len(lines) < 2:
        return lines
    print("the recording ends in a torn line, which is left out", file=sys.stderr)
    return lines[:-1]


def _tell_score(messages: Sequence[RoadState], truth: Path) -> None:
    """Beside the messages, so that these can be piped on."""
    score = score_messages(messages, truth)
    print(
        f"drive        {score.right_share:.1%} of the seconds right, {score.unknown_share:.1%} unknown, "
        f"longest wrong {score.longest_wrong_s:.2f} s\nice          {score.of_ice}",
        file=sys.stderr,
    )
