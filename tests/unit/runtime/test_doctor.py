from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from edge_road import __version__
from edge_road.runtime import doctor


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_ROAD_HOME", str(tmp_path))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)


def found(name: str) -> doctor.Finding:
    return next(finding for finding in doctor.examine() if finding.what == name)


def test_it_tells_what_is_missing_and_what_to_do() -> None:
    bundle = found("newest bundle")
    assert not bundle.ok
    assert "to_trt" in bundle.fix
    assert found("sqlite").ok


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    assert (found("package no-such-package").ok, found("package no-such-package").found) == (
        False,
        "not installed",
    )


def test_it_knows_what_cameras_buses_and_models_need() -> None:
    """Each is there or is said not to be; none of them ends the look."""
    names = [finding.what for finding in doctor.examine()]
    assert {"GStreamer", "CAN interfaces", "TensorRT", "ONNX Runtime on"} <= set(names)
    assert "CPUExecutionProvider" in found("ONNX Runtime on").found
    assert found("TensorRT").ok or found("TensorRT").fix
    assert found("GStreamer").ok == (shutil.which("gst-launch-1.0") is not None)


def test_json_and_text_tell_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert doctor.main(["--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["version"] == __version__
    assert doctor.main([]) == 0
    text = capsys.readouterr().out
    assert all(finding["what"] in text for finding in values["findings"])
    assert list(tmp_path.iterdir()) == [], "it changed something"
