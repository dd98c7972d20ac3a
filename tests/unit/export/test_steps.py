"""Progress lines."""

from __future__ import annotations

import pytest

from edge_road.clock import ScriptedClock
from edge_road.export.steps import Steps


def test_a_step_tells_what_came_out_and_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    clock = ScriptedClock()
    with Steps(clock).step("export ONNX") as outcome:
        clock.sleep(2.5)
        outcome.text = "6.6 MB"
    assert capsys.readouterr().out.split() == ["export", "ONNX", "6.6", "MB", "2.5", "s"]


def test_a_step_that_fails_says_so_and_passes_the_error_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), Steps(ScriptedClock()).step("export ONNX"):
        raise KeyboardInterrupt
    assert capsys.readouterr().out.endswith("failed\n")


def test_a_step_fits_a_terminal_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    with Steps(ScriptedClock()).step("TensorRT-RTX, float16") as outcome:
        outcome.text = "built, 55 conv/linear kernels, 80% in INT8"
    assert len(capsys.readouterr().out.rstrip()) <= 80
