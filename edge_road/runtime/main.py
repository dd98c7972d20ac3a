"""The on-vehicle daemon: from a camera to messages that say dry, wet, icy or unknown."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from edge_road.clock import SystemClock, clock_of_speed
from edge_road.logs import set_up_logging
from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.gpsd import Gpsd
from edge_road.runtime.inputs_box import InputBox
from edge_road.runtime.live_line import LiveLine
from edge_road.runtime.lock import only_one
from edge_road.runtime.outputs import STANDARD_OUTPUT
from edge_road.runtime.outputs.opening import Interior, open_output
from edge_road.runtime.outputs.output_set import OutputSet
from edge_road.runtime.publisher import Publisher
from edge_road.runtime.recorder import Recorder
from edge_road.runtime.rehearsal import REHEARSAL, Rehearsal, rehearsal_from
from edge_road.runtime.signals import Requests, watch_signals
from edge_road.runtime.status import Status
from edge_road.runtime.supervisor import Supervisor
from edge_road.runtime.surroundings import Surroundings
from edge_road.runtime.systemd import Systemd
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_options import VehicleOptions
from edge_road.runtime.vehicle_outputs import JsonLinesOutput, OutputSettings

log = logging.getLogger(__name__)

STORE_S, FLUSH_S = 0.5, 1.5
"""at the end: to store the last events, and to send what is on its way"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    set_up_logging()
    settings = VehicleOptions(options)
    vehicle = settings.load()
    if options.check:
        from edge_road.runtime.check import check_vehicle

        return check_vehicle(vehicle)
    run(vehicle, options.duration, settings, options.record, options.vehicle)
    return 0


def run(
    vehicle: Vehicle,
    duration_s: float | None = None,
    settings: VehicleOptions | None = None,
    recording: Path | None = None,
    vehicle_file: Path | None = None,
) -> None:
    with ExitStack() as stack:
        requests = stack.enter_context(watch_signals())
        stack.enter_context(only_one(vehicle.vehicle))
        clock = clock_of_speed(vehicle.speed)
        rehearsal = rehearsal_from(os.environ, vehicle, SystemClock().mono_ns())
        around = _surroundings(vehicle, vehicle_file, requests, settings, stack)
        around = _rehearsing(around, rehearsal) if rehearsal.faults else around
        if recording is not None:
            recorder = Recorder(recording, vehicle, around.publisher.remarks)
            stack.callback(recorder.close)
            around = replace(around, record=recorder.record)
        Supervisor(vehicle, around, clock, duration_s).run()


def _surroundings(
    vehicle: Vehicle,
    vehicle_file: Path | None,
    requests: Requests,
    settings: VehicleOptions | None,
    stack: ExitStack,
) -> Surroundings:
    """Everything that the supervisor talks to, and how it is closed: events first, so that they go out."""
    machine, clock = SystemClock(), clock_of_speed(vehicle.speed)
    publisher = Publisher(vehicle, clock)
    journal = Journal(vehicle, publisher.boot_id, clock)
    status = Status(vehicle.vehicle, publisher.boot_id, machine)
    inputs = InputBox(clock)
    interior = Interior(
        vehicle, journal.writer, status, publisher.offline, requests.ask_reload, inputs, vehicle_file
    )
    outputs = OutputSet(lambda settings: open_output(settings, interior), machine)
    stack.callback(journal.writer.close, STORE_S)
    stack.callback(outputs.close, FLUSH_S)
    stack.callback(journal.writer.flush, STORE_S)
    outputs.use(_outputs_of(vehicle))
    publisher.outputs = outputs.current
    publisher.listeners.append(status.published)
    status.outputs, status.storage = outputs.health, journal.writer.health
    journal.writer.listen(outputs.publish_event)

    def use(changed: Vehicle) -> None:
        outputs.use(_outputs_of(changed))
        interior.vehicle = changed

    def start() -> None:
        outputs.start()
        if vehicle.gpsd is not None:
            receiver = Gpsd(vehicle.gpsd, inputs.take_gpsd)
            receiver.start()
            stack.callback(receiver.close, 0.1)

    around = Surroundings(
        publisher=publisher,
        journal=journal,
        status=status,
        systemd=Systemd(machine),
        live=LiveLine(sys.stderr, machine),
        requests=requests,
        inputs=inputs.newest,
        start_outputs=start,
        use_outputs=use,
    )
    return around if settings is None else _with_settings(around, settings)


def _rehearsing(around: Surroundings, rehearsal: Rehearsal) -> Surroundings:
    """Nobody is to be fooled: log, health and every message say that faults are injected."""
    around.status.rehearsal = tuple(map(str, rehearsal.faults))
    around.publisher.remarks = (REHEARSAL,)
    log.warning("faults are injected on purpose: %s", ", ".join(around.status.rehearsal))
    return replace(around, rehearsal=rehearsal)


def _with_settings(around: Surroundings, settings: VehicleOptions) -> Surroundings:
    def settle(outcome: Outcome) -> None:
        """In a thread: a slow disk must not hold up the heartbeat."""
        threading.Thread(target=settings.settle, args=(outcome,), name="settle").start()

    return replace(
        around, load_again=settings.load_again, bundle_wished=settings.bundle_wished, settle=settle
    )


def _outputs_of(vehicle: Vehicle) -> Sequence[OutputSettings]:
    """On a terminal a person reads the live line; JSON would only bury it."""
    if vehicle.outputs or sys.stdout.isatty():
        return vehicle.outputs
    return (JsonLinesOutput(path=STANDARD_OUTPUT),)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="road_daemon",
        description="Watch a road and say dry, wet, icy or unknown, with the evidence for it. "
        "Without options: the newest bundle on a synthetic drive.",
        epilog="Messages are JSON lines on the standard output (not on a terminal) or in a file. "
        "The daemon never stops by itself on a live camera; SIGTERM or Ctrl-C ends it.",
    )
    add = parser.add_argument
    add("--vehicle", type=Path, metavar="FILE", help="vehicle file, e.g. runtime/vehicles/video.toml")
    add("--bundle", type=Path, metavar="DIR", help="the model's bundle (default: the newest)")
    add(
        "--source",
        metavar="SOURCE",
        help="synthetic, a video file, a folder of pictures, "
        "v4l2:/dev/video0, csi:0, rtsp://... or http://... (JPEG)",
    )
    add("--messages", metavar="FILE", help="write messages to this file; - is the standard output")
    add("--truth", metavar="FILE", help="write what a synthetic drive really was, to score the messages")
    add("--record", type=Path, metavar="FILE", help="keep what decided every message, for replay_drive.py")
    add("--duration", type=float, metavar="S", help="end after this many seconds")
    add("--check", action="store_true", help="only check vehicle file, bundle, source and outputs")
    add(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change one setting of the vehicle file, e.g. source.loop=true (repeatable)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
