"""From the settings of an output to the output; libraries are imported only where they are asked for."""

from __future__ import annotations

from edge_road.runtime.outputs.json_lines import JsonLines
from edge_road.runtime.outputs.output import Output
from edge_road.runtime.vehicle_outputs import JsonLinesOutput, OutputSettings


def open_output(settings: OutputSettings) -> Output:
    assert isinstance(settings, JsonLinesOutput)
    return JsonLines(settings)


def check_output(settings: OutputSettings) -> str:
    """One line that says what was found; what is wrong is raised."""
    assert isinstance(settings, JsonLinesOutput)
    JsonLines(settings).close(timeout_s=1.0)
    return f"{settings.path}: can be written"
