"""The supervisor with everything that it talks to, put together from the settings of a vehicle."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from edge_road.clock import SystemClock, clock_of_speed
from edge_road.runtime.bundle_choice import Outcome
from edge_road.runtime.events.journal import Journal
from edge_road.runtime.events.writer import StorageHealth
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
from edge_road.runtime.smoke_at_start import begin_smoke
from edge_road.runtime.snapshot import forget_pictures
from edge_road.runtime.spawning import EarlyWorker
from edge_road.runtime.status import Status
from edge_road.runtime.supervisor import Supervisor
from edge_road.runtime.surroundings import Surroundings
from edge_road.runtime.systemd import Systemd
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_options import VehicleOptions
from edge_road.runtime.vehicle_outputs import JsonLinesOutput, MqttOutput, OutputSettings

log = logging.getLogger(__name__)

STORE_S, FLUSH_S = 0.5, 1.5
"""at the end: to store the last events, and to send what is on its way"""


def run(
    vehicle: Vehicle,
    duration_s: float | None = None,
    settings: VehicleOptions | None = None,
    recording: Path | None = None,
    vehicle_file: Path | None = None,
    early: EarlyWorker | None = None,
) -> None:
    with ExitStack() as stack:
        requests = stack.enter_context(watch_signals())
        stack.enter_context(only_one(vehicle.vehicle))
        stack.callback(forget_pictures, vehicle.vehicle)
        forget_pictures(vehicle.vehicle)
        clock = clock_of_speed(vehicle.speed)
        rehearsal = rehearsal_from(os.environ, vehicle, SystemClock().mono_ns())
        around = _surroundings(vehicle, vehicle_file, requests, settings, stack)
        around = _rehearsing(around, rehearsal) if rehearsal.faults else around
        if recording is not None:
            recorder = Recorder(recording, vehicle, around.publisher.remarks)
            stack.callback(recorder.close)
            around = replace(around, record=recorder.record)
        Supervisor(vehicle, around, clock, duration_s, early).run()


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
    status.outputs = outputs.health
    status.storage = lambda: awaited(journal.writer.health(), interior.vehicle)
    journal.writer.listen(outputs.publish_event)

    def use(changed: Vehicle) -> None:
        outputs.use(_outputs_of(changed))
        interior.vehicle = changed

    def restore(changed: Vehicle) -> None:
        outputs.restore(_outputs_of(changed))
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
        begin_smoke=partial(begin_smoke, status, journal),
        start_outputs=start,
        use_outputs=use,
        restore_outputs=restore,
    )
    return around if settings is None else _with_settings(around, settings)


def awaited(health: StorageHealth, vehicle: Vehicle) -> StorageHealth:
    """Only MQTT fetches events out of the store; where nobody will, they are kept, and none of them waits."""
    is_fetched = any(isinstance(output, MqttOutput) for output in vehicle.outputs)
    return health if is_fetched else replace(health, waiting=0)


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
        around,
        load_again=settings.load_again,
        bundle_wished=settings.bundle_wished,
        instead_of_damaged=settings.instead_of_damaged,
        settle=settle,
    )


def _outputs_of(vehicle: Vehicle) -> Sequence[OutputSettings]:
    """On a terminal a person reads the live line; JSON would only bury it."""
    if vehicle.outputs or sys.stdout.isatty():
        return vehicle.outputs
    return (JsonLinesOutput(path=STANDARD_OUTPUT),)
