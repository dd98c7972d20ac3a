"""From the settings of an output to the output; libraries are imported only where they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edge_road.clock import SystemClock
from edge_road.errors import ConfigError
from edge_road.runtime.events.writer import EventWriter
from edge_road.runtime.inputs_box import InputBox
from edge_road.runtime.outputs.json_lines import JsonLines, Taken, check_path
from edge_road.runtime.outputs.output import Output
from edge_road.runtime.status import Status
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_outputs import (
    CanOutput,
    HttpOutput,
    JsonLinesOutput,
    MqttOutput,
    OutputSettings,
    UnixSocketOutput,
)
from edge_road.secret_file import read_secret


@dataclass
class Interior:
    """What outputs may look at inside the daemon."""

    vehicle: Vehicle
    """the settings of now: replaced when new ones are taken"""
    events: EventWriter
    status: Status
    offline: Callable[[], str]
    """the message that others send in our name when we vanish"""
    reload: Callable[[], None]
    """asks the supervisor to read its settings again"""
    inputs: InputBox
    vehicle_file: Path | None = None
    """where the settings were read, for whoever may change them"""


def open_output(settings: OutputSettings, interior: Interior) -> Output:
    machine = SystemClock()
    if isinstance(settings, JsonLinesOutput):
        return JsonLines(settings)
    if isinstance(settings, UnixSocketOutput):
        from edge_road.runtime.outputs.unix_socket import UnixSocket

        return UnixSocket(settings, interior.vehicle.vehicle, interior.inputs.take)
    if isinstance(settings, MqttOutput):
        from edge_road.runtime.outputs.mqtt import Mqtt

        name, take = interior.vehicle.vehicle, interior.inputs.take
        return Mqtt(settings, name, interior.events, interior.offline, machine, take)
    if isinstance(settings, HttpOutput):
        from edge_road.runtime.outputs.web import Web

        status, reload = interior.status, interior.reload
        return Web(settings, status, lambda: interior.vehicle, reload, interior.vehicle_file)
    assert isinstance(settings, CanOutput)
    from edge_road.runtime.outputs.can_bus import CanBus

    return CanBus(settings, machine)


def check_output(settings: OutputSettings, daemon: int | None = None) -> str:
    """One line that says what was found; what is wrong, such as a secret that cannot be read, is raised.

    `daemon` is the process that runs with settings like these already.
    """
    if isinstance(settings, JsonLinesOutput):
        try:
            return check_path(settings.path)
        except Taken:
            if daemon is None:
                raise
            return f"{settings.path}: the daemon that runs (process {daemon}) writes to it"
    if isinstance(settings, MqttOutput):
        from edge_road.runtime.outputs.mqtt import credentials

        credentials(settings)
        return f"mqtt {settings.host}:{settings.port}: settings are valid"
    if isinstance(settings, HttpOutput):
        if settings.token_file is not None:
            read_secret(settings.token_file)
        return _check_http(settings, daemon)
    if isinstance(settings, UnixSocketOutput) and settings.path is not None and daemon is None:
        from edge_road.runtime.outputs.unix_socket import check_door

        return check_door(settings.path)
    return f"{settings.kind}: settings are valid"


def _check_http(settings: HttpOutput, daemon: int | None) -> str:
    from edge_road.web.server import listen

    name = f"http {settings.host}:{settings.port}"
    try:
        listen(settings).close()
    except ConfigError:
        if daemon is None:
            raise
        return f"{name}: not free, the daemon that runs (process {daemon}) may serve it"
    return f"{name}: can be served"
