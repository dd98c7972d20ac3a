"""The wire between supervisor and worker: whole records over a socket, never half of one."""

from __future__ import annotations

import select
import socket
from contextlib import suppress
from typing import Literal

from pydantic import Field, TypeAdapter, ValidationError

from edge_road.errors import EdgeRoadError
from edge_road.runtime.evidence import (
    REPORT,
    Alive,
    Ended,
    Evidence,
    Failed,
    Machine,
    Ready,
    Record,
    SwapStep,
)
from edge_road.runtime.rehearsal import NO_REHEARSAL, Rehearsal
from edge_road.runtime.vehicle import Vehicle
from edge_road.runtime.vehicle_inputs import NO_INPUTS, VehicleInputs

LARGEST_RECORD_BYTES = 256 * 1024
MOST_AT_ONCE = 64
PATIENCE_S = 1.0
"""for a supervisor that does not read"""

AnyReport = Evidence | Ready | Alive | Failed | Ended | Machine | SwapStep
INPUTS = TypeAdapter(VehicleInputs)


class Setup(Record):
    """The supervisor's first record: what the worker is to do. Vehicle inputs and orders follow."""

    vehicle: Vehicle
    origin_mono_ns: int | None = Field(default=None)
    """when the drive began, for a worker that takes over from one that died"""
    rehearsal: Rehearsal = NO_REHEARSAL


class Order(Record):
    """What to do about a new bundle: try it beside the one that runs; keep it, or take the old one back."""

    kind: Literal["order"] = "order"
    what: Literal["try", "keep", "back"]
    vehicle: Vehicle | None = None
    """with the new bundle"""


_ORDER = b'{"kind":"order"'


class SupervisorEnd:
    """Never blocks."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self._channel = channel

    def fileno(self) -> int:
        return self._channel.fileno()

    def send_setup(self, setup: Setup) -> None:
        self._channel.send(setup.model_dump_json().encode())

    def send_inputs(self, inputs: VehicleInputs) -> None:
        """A worker that does not listen, or is gone, does without."""
        with suppress(BlockingIOError, ConnectionError):
            self._channel.send(INPUTS.dump_json(inputs))

    def send_order(self, order: Order) -> bool:
        """False when the worker does not listen or is gone."""
        try:
            self._channel.send(order.model_dump_json().encode())
        except (BlockingIOError, ConnectionError):
            return False
        return True

    def receive(self) -> list[AnyReport] | None:
        """The records that have come; none when the worker is gone and all it said has been read."""
        reports: list[AnyReport] = []
        while len(reports) < MOST_AT_ONCE:
            try:
                record = self._channel.recv(LARGEST_RECORD_BYTES)
            except BlockingIOError:
                return reports
            except ConnectionError:
                record = b""
            if not record:
                return reports or None
            reports.append(_parse(record))
        return reports

    def close(self) -> None:
        self._channel.close()


class WorkerEnd:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._inputs = NO_INPUTS
        self._orders: list[Order] = []

    def take_orders(self) -> list[Order]:
        """Those that came with the inputs."""
        orders, self._orders = self._orders, []
        return orders

    def newest_inputs(self) -> VehicleInputs:
        """What the vehicle has told last; does not wait."""
        while True:
            try:
                record = self._channel.recv(LARGEST_RECORD_BYTES)
            except BlockingIOError:
                return self._inputs
            if not record:
                raise ConnectionResetError("the supervisor is gone")
            if record.startswith(_ORDER):
                self._orders.append(Order.model_validate_json(record))
            else:
                self._inputs = INPUTS.validate_json(record)

    def receive_setup(self) -> Setup:
        """Waits for it: a worker may have been started before its settings were read."""
        self._channel.setblocking(True)
        record = self._channel.recv(LARGEST_RECORD_BYTES)
        self._channel.setblocking(False)
        if not record:
            raise ConnectionResetError("the supervisor is gone")
        return Setup.model_validate_json(record)

    def send(self, report: AnyReport) -> None:
        """A supervisor that does not read loses records; one that is gone ends us (ConnectionError)."""
        record = report.model_dump_json().encode()
        try:
            self._channel.send(record)
        except BlockingIOError:
            select.select([], [self._channel], [], PATIENCE_S)
            with suppress(BlockingIOError):
                self._channel.send(record)


def _parse(record: bytes) -> AnyReport:
    try:
        return REPORT.validate_json(record)
    except ValidationError as error:
        raise EdgeRoadError("the worker sent a record that makes no sense", got=str(error)[:300]) from None
