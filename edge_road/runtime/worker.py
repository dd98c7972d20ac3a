"""The process that sees: it opens camera and model and sends evidence; it may hang, crash or be killed.

camera -> checks -> preprocess -> slot, in a thread of its own; slot -> predictor -> evidence
"""

from __future__ import annotations

import logging
import os
import socket
import sys

from edge_road.clock import SystemClock, clock_of_speed
from edge_road.errors import EdgeRoadError
from edge_road.frames import Frame
from edge_road.logs import set_up_logging
from edge_road.runtime.capture import Capture
from edge_road.runtime.evidence import Alive, Ended, Evidence, Failed, Ready
from edge_road.runtime.injected_faults import FaultyCamera, faulty_model, strike
from edge_road.runtime.link import Setup, WorkerEnd
from edge_road.runtime.machine import MachineCare
from edge_road.runtime.model import LoadedModel, load_model
from edge_road.runtime.model_seat import ModelSeat, Seated
from edge_road.runtime.parts import Parts
from edge_road.runtime.perception import Perception, View
from edge_road.runtime.slot import NewestFrameSlot
from edge_road.runtime.sources import Source, source_for
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.vehicle import WorkerLimits
from edge_road.runtime.vehicle_inputs import NO_INPUTS
from edge_road.runtime.worker_limits import give_back_memory, limit_ourselves

log = logging.getLogger(__name__)

Seen = tuple[Seated, View]
"""a picture, prepared for one model"""
SIGN_OF_LIFE_S = 0.1
SICK_FRAMES = 50
SWITCH_S = 0.0005
"""a thread that wants to go on waits this long for one that computes; Python's default is 5 ms"""


def work(link: WorkerEnd, setup: Setup) -> None:
    """Judge the newest frame, again and again, until the source ends or something gives way."""
    vehicle = setup.vehicle
    clock = clock_of_speed(vehicle.speed)
    model = load_model(vehicle)
    give_back_memory()
    # Only now: a process never needs more memory than while it opens a model.
    from edge_road.runtime.frame_store import FrameKeeper
    from edge_road.runtime.preview import Preview

    source = source_for(vehicle.source, clock, setup.origin_mono_ns)
    if setup.rehearsal.faults:
        model, source = faulty_model(model, setup.rehearsal), FaultyCamera(source, setup.rehearsal)
    seat = ModelSeat(vehicle, model, link.send)
    slot = NewestFrameSlot[Seen]()
    preview, parts = Preview(vehicle), Parts(vehicle, seat.now.model)
    keeper = FrameKeeper(vehicle, seat.now.perception.crops)
    inputs = NO_INPUTS

    def prepare(picture: Frame | Unreadable) -> None:
        seated = seat.now
        slot.put((seated, seated.perception.view(picture, inputs)))
        if isinstance(picture, Frame):
            preview.show(picture.pixels)  # the page waits for the road, never the other way round

    capture = Capture(source, prepare, clock, vehicle.rate, vehicle.worker.longest_pause_s)
    care = MachineCare(vehicle.rate, vehicle.thermal)
    capture.start()
    ready, camera = _ready(seat.now.model, source, vehicle.rate), _camera(source)
    link.send(ready)
    while True:
        ended = capture.ended  # asked first: a frame that came before the end is still taken
        seen = slot.take(timeout_s=SIGN_OF_LIFE_S)
        inputs = link.newest_inputs()
        for order in link.take_orders():
            seat.obey(order, ready.period_s)
        seat.turn()
        strike(setup.rehearsal, SystemClock())
        if seen is not None:
            evidence = _judge(seen, seat, link, parts, dropped=slot.dropped, rejected=source.rejected)
            if evidence is not None:
                keeper.look(seen[1], evidence, seat.now.model, inputs)
        elif ended:
            link.send(Ended(dropped=slot.dropped, rejected=source.rejected))
            return
        else:
            link.send(Alive())
        _check_capture(capture, vehicle.worker)
        if _camera(source) != camera:
            ready, camera = _ready(seat.now.model, source, vehicle.rate, first=False), _camera(source)
            link.send(ready)
        if (machine := care.look(slot)) is not None:
            capture.set_rate(machine.rate_hz)
            link.send(machine)


def _judge(
    seen: Seen, seat: ModelSeat, link: WorkerEnd, parts: Parts, dropped: int, rejected: int
) -> Evidence | None:
    seated, view = seen
    if seated is not seat.now:
        return None  # prepared for the model before: its answer would carry the wrong name
    evidence = seated.perception.judge(view)
    link.send(evidence.model_copy(update={"dropped": dropped, "rejected": rejected}))
    seat.offer(view.picture, evidence)
    _check_model(seated.perception, seated.model)
    parts.look(seated.model, view, evidence)
    return evidence


def _camera(source: Source) -> tuple[str, float]:
    return source.description, source.period_s


def _ready(model: LoadedModel, source: Source, rate: float, first: bool = True) -> Ready:
    return Ready(
        predictor=model.predictor.name,
        model_digest=model.digest,
        confidence_threshold=model.confidence_threshold,
        source=source.description,
        period_s=max(source.period_s, 1 / rate),
        origin_mono_ns=source.origin_ns,
        first=first,
    )


def _check_model(perception: Perception, model: LoadedModel) -> None:
    """A model that gives no numbers for a while is asked for its probe outputs; failing them ends us."""
    if perception.sick_in_a_row >= SICK_FRAMES:
        log.error("%d answers in a row are no numbers; the model is tested", perception.sick_in_a_row)
        perception.sick_in_a_row = 0
        model.self_test()


def _check_capture(capture: Capture, limits: WorkerLimits) -> None:
    """A call that does not come back can only be ended with the process that made it."""
    if capture.bug is not None:
        raise capture.bug
    if capture.stuck_s() > (limits.open_s if capture.opening else limits.stall_s):
        log.error("the camera does not answer for %.1f s; the worker ends itself", capture.stuck_s())
        sys.stderr.flush()
        os._exit(1)


def main(descriptors: list[int]) -> int:
    set_up_logging()
    sys.setswitchinterval(SWITCH_S)
    link = WorkerEnd(socket.socket(fileno=descriptors[0]))
    try:
        setup = link.receive_setup()
        limit_ourselves(setup.vehicle.worker)
        work(link, setup)
    except EdgeRoadError as error:
        link.send(Failed.because(error))
        return error.exit_code
    except ConnectionError:
        return 1  # the supervisor is gone, so there is nobody to tell
    except Exception:
        log.exception("the worker has a bug or no memory")
        return EdgeRoadError.exit_code
    return 0
