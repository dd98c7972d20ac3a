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
        """Open what is new, then close what is gone; when one cannot be opened, nothing changes."""
        opened: dict[OutputSettings, Output] = {}
        try:
            for settings in wanted:
                if settings not in self._by_settings:
                    opened[settings] = self._open_output(settings)
        except EdgeRoadError:
            for output in opened.values():
                output.close(timeout_s=0.2)
            raise
        gone = [output for settings, output in self._by_settings.items() if settings not in wanted]
        known = {**self._by_settings, **opened}
        self._by_settings = {settings: known[settings] for settings in wanted}
        self.current[:] = self._by_settings.values()
        if self._started:
            for output in opened.values():
                output.start()
        for output in gone:
            output.close(timeout_s=0.2)

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
