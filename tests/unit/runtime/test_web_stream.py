"""Health as a table of the page shows it."""

from __future__ import annotations

import json

from edge_road.clock import SystemClock
from edge_road.runtime.outputs.output import OutputHealth
from edge_road.runtime.outputs.web_stream import flat_health, told
from edge_road.runtime.status import Status


def test_every_value_of_health_is_one_that_a_cell_can_show() -> None:
    status = Status("van", "b", SystemClock())
    status.outputs = lambda: [OutputHealth("mqtt", False, "no broker"), OutputHealth("http", True)]
    flat = flat_health(status)
    assert (flat["mqtt"], flat["http"]) == ("no broker", "ok")
    assert all(isinstance(value, (str, int, float)) for value in flat.values()), flat
    assert json.dumps(flat)


def test_what_is_not_there_and_what_never_changes_is_left_out() -> None:
    flat = flat_health(Status("van", "b", SystemClock()))
    assert not {"swap", "cpu", "cores", "hottest_c", "reasons"} & flat.keys()
    assert flat["frames"] == 0, "a zero is there"


def test_nested_values_become_one_line() -> None:
    assert told({"stage": "canary", "share": 0.98765, "reason": "", "deep": {"a": 1}}) == (
        "stage canary, share 0.99, deep a 1"
    )
    assert told(["camera.freeze", "worker.hang"]) == "camera.freeze, worker.hang"
