"""`fault_row`: a test of the fault matrix holds its measurement against the promise and records it.

With EDGE_ROAD_FAULT_TABLE set to a file, every measurement is one JSON line in it, kept or not;
`tests/faults/make_table.py` turns the file into docs/reliability.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_harness import ATTEMPT, crowding

FaultRow = Callable[..., None]


@pytest.fixture
def fault_row(request: pytest.FixtureRequest) -> FaultRow:
    def record(
        number: int,
        what: str,
        *,
        state: str = "unknown",
        reason: str | None = None,
        detect_s: float | None = None,
        detect_limit_s: float | None = None,
        recover_s: float | None = None,
        recover_limit_s: float | None = None,
        how: str = "",
        note: str = "",
    ) -> None:
        """Row `number` of the matrix: what was done, what was said, and how long it took.

        `how`: by which means the fault was made. `note`: a figure that is no time, such as a count.
        """
        row = {
            "row": number,
            "what": what,
            "state": state,
            "reason": reason,
            "detect_s": detect_s,
            "detect_limit_s": detect_limit_s,
            "recover_s": recover_s,
            "recover_limit_s": recover_limit_s,
            "how": how,
            "note": note,
            "attempt": ATTEMPT.get(),
            "test": request.node.nodeid.split("::")[-1],
            "file": Path(request.node.path).name,
        }
        if table := os.environ.get("EDGE_ROAD_FAULT_TABLE"):
            with open(table, "a") as file:
                file.write(json.dumps(row) + "\n")
        for name in ("detect", "recover"):
            took_s, limit_s = row[f"{name}_s"], row[f"{name}_limit_s"]
            if limit_s is not None:
                assert took_s is not None, f"row {number}: {name}_s was not measured"
                told = f"row {number}: {name} took {took_s:.3f} s, promised {limit_s} s"
                assert took_s <= limit_s * crowding(), told

    return record
