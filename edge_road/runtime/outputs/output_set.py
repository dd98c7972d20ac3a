"""All outputs of a daemon: opened together, changed together, closed within one deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from edge_road.clock import Clock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.outputs.output import Output, OutputHealth
from edge_road.runtime.vehicle_outputs import OutputSettings

log = logging.getLogger(__name__)


class OutputSet:
    """`current` is what the publisher writes to; it is changed in place."""

    def __init__(self, open_output: Callable[[OutputSettings], Output], machine: Clock) -> None:
        self._open_output, self._machine = open_output, machine
        self._by_settings: dict[OutputSettings, Output] = {}
        self._started = False
        self.current: list[Output] = []

    def use(self, wanted: Sequence[OutputSettings]) -> None:
        """Close what is gone, then open what is new, often in the same place; if that fails, all returns."""
        before = tuple(self._by_settings)
        self._close_all_but(wanted)
        try:
            for settings in wanted:
                self._open(settings)
        except EdgeRoadError:
            self.restore(before)
            raise
        self._put_in_order(wanted)

    def restore(self, wanted: Sequence[OutputSettings]) -> None:
        """What was open once must not end the daemon: one that cannot be opened again is left out."""
        self._close_all_but(wanted)
        for settings in wanted:
            try:
                self._open(settings)
            except EdgeRoadError as error:
                log.error("an output is lost until the settings are read again: %s", error)
        self._put_in_order(wanted)

    def _close_all_but(self, wanted: Sequence[OutputSettings]) -> None:
        gone = [output for settings, output in self._by_settings.items() if settings not in wanted]
        self._keep({settings: o for settings, o in self._by_settings.items() if settings in wanted})
        for output in gone:
            output.close(timeout_s=0.2)

    def _open(self, settings: OutputSettings) -> None:
        if settings in self._by_settings:
            return
        output = self._open_output(settings)
        self._keep({**self._by_settings, settings: output})
        if self._started:
            output.start()

    def _put_in_order(self, wanted: Sequence[OutputSettings]) -> None:
        opened = self._by_settings
        self._keep({settings: opened[settings] for settings in wanted if settings in opened})

    def _keep(self, outputs: dict[OutputSettings, Output]) -> None:
        self._by_settings = outputs
        self.current[:] = outputs.values()

    def start(self) -> None:
        self._started = True
        for output in self.current:
            output.start()

    def publish_event(self, line: str) -> None:
        for output in tuple(self.current):
            output.publish_event(line)

    def health(self) -> list[OutputHealth]:
        return [output.health() for output in tuple(self.current)]

    def close(self, timeout_s: float) -> None:
        deadline_ns = self._machine.mono_ns() + round(timeout_s * 1e9)
        for output in self.current:
            output.close(max(0.1, (deadline_ns - self._machine.mono_ns()) / 1e9))
