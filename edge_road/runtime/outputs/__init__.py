"""Where messages go. A slow reader, a full disk or a closed pipe never holds up the publisher."""

from __future__ import annotations

from edge_road.runtime.outputs.json_lines import STANDARD_OUTPUT, JsonLines
from edge_road.runtime.outputs.output import Output, OutputHealth

__all__ = ["STANDARD_OUTPUT", "JsonLines", "Output", "OutputHealth"]
