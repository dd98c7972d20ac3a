"""Time and memory of a model are measured in a process of its own."""

from __future__ import annotations

from tiny_onnx import SIZE, conv_bytes

from edge_road.export.footprint import Footprint, footprint
from edge_road.export.gate import judge_machine
from edge_road.export.target import MachineLimits


def test_a_real_model_has_a_time_and_a_memory() -> None:
    found = footprint(conv_bytes(batch=2), SIZE, batch=2)
    assert isinstance(found, Footprint)
    assert found.latency_ms > 0
    assert 5 < found.memory_mb < 400
    assert judge_machine(found, MachineLimits()).passed


def test_a_model_that_cannot_run_is_refused_in_words() -> None:
    found = footprint(b"no model", SIZE)
    assert isinstance(found, str)
    verdict = judge_machine(found, MachineLimits())
    assert verdict.reasons[0].startswith("it cannot run in a process of its own")


def test_a_model_beyond_the_limits_is_refused_with_the_figure() -> None:
    verdict = judge_machine(Footprint(latency_ms=12.5, memory_mb=90), MachineLimits(latency_ms=10))
    assert verdict.reasons == ("time of an image here, ms 12.5 (at most 10)",)
