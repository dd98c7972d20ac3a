"""All outputs of a daemon: opened together, changed together, closed within one deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edge_road.clock import Clock
from edge_road.errors import EdgeRoadError
from edge_road.runtime.outputs.output import Output, OutputHealth
from edge_road.runtime.vehicle_outputs import OutputSettings


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
        try:
            self._change_to(wanted)
        except EdgeRoadError:
            self._change_to(before)
            raise

    def _change_to(self, wanted: Sequence[OutputSettings]) -> None:
        gone = [output for settings, output in self._by_settings.items() if settings not in wanted]
        self._keep({settings: o for settings, o in self._by_settings.items() if settings in wanted})
        for output in gone:
            output.close(timeout_s=0.2)
        for settings in wanted:
            if settings not in self._by_settings:
                output = self._open_output(settings)
                self._keep({**self._by_settings, settings: output})
                if self._started:
                    output.start()
        self._keep({settings: self._by_settings[settings] for settings in wanted})

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
