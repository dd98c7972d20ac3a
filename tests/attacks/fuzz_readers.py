"""Run apart by test_fuzz_smoke.py, or for longer by hand: `python fuzz_readers.py SEEDS -max_total_time=600`.

The first byte chooses the reader. Only the errors that a user would see may come out.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["edge_road.manifest", "edge_road.probe"]):
    from edge_road.backends.onnx_check import check_onnx
    from edge_road.errors import EdgeRoadError
    from edge_road.manifest import parse_manifest
    from edge_road.probe import Probe

READERS = (
    lambda content: parse_manifest(content, Path("manifest.json")),
    check_onnx,
    Probe.from_bytes,
)


def read(content: bytes) -> None:
    if content:
        with contextlib.suppress(EdgeRoadError):
            READERS[content[0] % len(READERS)](content[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
