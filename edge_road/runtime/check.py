"""`--check`: would this vehicle run? Everything is opened once, in one process, and closed again.

Beside a daemon that runs for the vehicle already, the camera is left to it: many have room for one reader.
"""

from __future__ import annotations

from edge_road.clock import Clock, clock_of_speed
from edge_road.errors import CameraError
from edge_road.files import check_writable
from edge_road.frames import Frame
from edge_road.runtime.decision import DecisionSettings, rules_for
from edge_road.runtime.lock import owner_of
from edge_road.runtime.model import load_model
from edge_road.runtime.outputs.opening import check_output
from edge_road.runtime.sources import EndOfStream, Source, source_for
from edge_road.runtime.sources.base import Unreadable
from edge_road.runtime.vehicle import Vehicle

FIRST_FRAME_S = 5.0


def check_vehicle(vehicle: Vehicle) -> int:
    """Prints what was found; what is wrong is raised with its exit code."""
    print(f"vehicle  {vehicle.vehicle}: settings are valid")
    model = load_model(vehicle)
    print(f"model    {model.predictor.name}, digest {model.digest[:16]}, gives its own probe outputs")
    clock = clock_of_speed(vehicle.speed)
    source, daemon = source_for(vehicle.source, clock), owner_of(vehicle.vehicle)
    if source.live and daemon is not None:
        print(
            f"source   {source.description}: not opened, the daemon that runs (process {daemon}) may need it"
        )
    else:
        print(f"source   {_check_source(source, clock)}{_too_slow(source.period_s, vehicle.decision)}")
    for settings in vehicle.outputs:
        print(f"output   {check_output(settings, daemon)}")
    _check_places(vehicle)
    return 0


def _check_places(vehicle: Vehicle) -> None:
    """Those that the vehicle file names; the others are given by systemd, perhaps only at the start."""
    if (events := vehicle.events.path) is not None:
        check_writable(events.parent)
        if events.exists():
            events.open("ab").close()
        print(f"events   {events}: can be written")
    if (folder := vehicle.keep.folder) is not None:
        check_writable(folder)
        print(f"pictures {folder}: can be written")


def _check_source(source: Source, clock: Clock) -> str:
    source.open()
    try:
        frame = _first_frame(source, clock, clock.mono_ns() + round(FIRST_FRAME_S * 1e9))
    finally:
        source.close()
    height, width = frame.pixels.shape[:2]
    return f"{source.description}: {width} x {height} at {1 / source.period_s:.4g} fps"


def _too_slow(period_s: float, settings: DecisionSettings) -> str:
    fresh_s = rules_for(settings, 1.0, period_s).fresh_ns / 1e9
    return f"; a state holds for {fresh_s:g} s, so it is unknown between pictures" * (period_s > fresh_s)


def _first_frame(source: Source, clock: Clock, deadline_ns: int) -> Frame:
    """A live camera's read ends early when nothing has come, so it is asked until the deadline."""
    picture: Frame | Unreadable | None = None
    try:
        while not isinstance(picture, Frame) and clock.mono_ns() < deadline_ns:
            picture = source.read(deadline_ns)
    except EndOfStream:
        pass
    if not isinstance(picture, Frame):
        raise CameraError("the source gives no frame", where=source.description)
    return picture
